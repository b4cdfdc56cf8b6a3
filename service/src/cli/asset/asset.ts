/** `touchstone asset …`: the lifecycle of an asset on chain, from minting to recycling (spec §3). */
import type { Command } from 'commander'
import { defineGroup } from '../session/command.ts'
import type { RunWork } from '../session/session.ts'
import { bindCommand } from './bind.ts'
import { claimCommand } from './claim.ts'
import { historyCommand } from './history.ts'
import { mintCommand } from './mint.ts'
import { showCommand } from './show.ts'
import { activateCommand, flagCommand, recycleCommand, resolveCommand } from './steps.ts'

export function assetCommand(run: RunWork): Command {
  return defineGroup(
    'asset',
    'Assets on chain: mint, bind, activate, claim, flag, resolve, recycle, show.',
    [
      mintCommand(run),
      bindCommand(run),
      activateCommand(run),
      claimCommand(run),
      flagCommand(run),
      resolveCommand(run),
      recycleCommand(run),
      showCommand(run),
      historyCommand(run),
    ],
    `NONE → MINTED → BOUND → ACTIVATED → CLAIMED; FLAGGED from any of the last three and back; RECYCLED is the end.
Every command that writes has --dry-run, prints transaction, block and new state, and takes an idempotency --key.`,
  )
}

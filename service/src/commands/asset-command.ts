/** `touchstone asset …`: the lifecycle of an asset on chain, from minting to recycling (spec §3). */
import { Command } from 'commander'
import { bindCommand } from './asset-bind.ts'
import { claimCommand } from './asset-claim.ts'
import { historyCommand } from './asset-history.ts'
import { mintCommand } from './asset-mint.ts'
import { showCommand } from './asset-show.ts'
import { activateCommand, flagCommand, recycleCommand, resolveCommand } from './asset-steps.ts'
import type { RunWork } from './store-command.ts'

export function assetCommand(run: RunWork): Command {
  const asset = new Command('asset').description(
    'Assets on chain: mint, bind, activate, claim, flag, resolve, recycle, look.',
  )
  const commands = [
    mintCommand(run),
    bindCommand(run),
    activateCommand(run),
    claimCommand(run),
    flagCommand(run),
    resolveCommand(run),
    recycleCommand(run),
    showCommand(run),
    historyCommand(run),
  ]
  for (const command of commands) asset.addCommand(command)
  return asset.addHelpText(
    'after',
    `
NONE → MINTED → BOUND → ACTIVATED → CLAIMED; FLAGGED from any of the last three and back; RECYCLED is the end.
Every command that writes has --dry-run, prints transaction, block and new state, and takes an idempotency --key.`,
  )
}

/** The tap flow of the parts (spec §4.4): keys, ledger, chain, announcement. */
import { createHash } from 'node:crypto'
import type { Verdicts } from './asset/verdicts.ts'
import type { Config } from './config.ts'
import type { Log } from './log.ts'
import type { Database } from './store/database.ts'
import { outboxNotices } from './store/outbox.ts'
import { createAuthenticate } from './tap/authenticate.ts'
import { announceVerified, createLedger } from './tap/counter.ts'
import type { Fleet } from './tap/fleet.ts'
import { createTapBinding, createTapChallenge } from './tap/presence.ts'
import { createTagHash } from './tap/tag-hash.ts'
import { createVerifyTap } from './tap/verify-tap.ts'
import { createPresentTap } from './verification/present-tap.ts'

/** Without a pepper no tag can be found on chain, so that the verifier is not configured. */
export function createTapFlow({
  config,
  database,
  fleet,
  verdicts,
  log,
}: {
  config: Config
  database: Database
  fleet: Fleet
  verdicts: Verdicts
  log: Log
}) {
  const { commitment, pepper, kek, windowSeconds, bind, challenge } = config.tap
  const tagHash =
    commitment === 'hmac'
      ? pepper === null
        ? undefined
        : createTagHash({ scheme: 'hmac', pepper })
      : createTagHash({ scheme: commitment })
  const { keys } = fleet
  const secret = createHash('sha256')
    .update('touchstone tap tokens')
    .update(kek ?? '')
    .digest()
  const verifyTap = createVerifyTap({
    keys: tagHash === undefined ? { ...keys, ready: () => false } : keys,
    authenticate: createAuthenticate({ keys }),
    ledger: createLedger({ sql: database, windowSeconds }),
    tagHash: tagHash ?? (() => zeroHash),
    binding: bind ? createTapBinding({ secret }) : undefined,
    challenge: challenge ? createTapChallenge({ secret }) : undefined,
    onAnomaly: ({ kind, batchId, counter, lastCounter }) =>
      log.warn('unusual tap', { kind, batchId, counter, lastCounter }),
  })
  const notifyReaders = outboxNotices(database)
  const presentTap = createPresentTap({
    verifyTap,
    verdicts,
    announce: async (tag, verdict) => {
      if (!(await announceVerified(database, { ...tag, tokenId: BigInt(verdict.token_id) }))) return
      notifyReaders()
      log.info('product verified', { tokenId: verdict.token_id, tapCounter: tag.tapCounter })
    },
    onRefused: (kind, reason) => log.info('tap refused', { kind, reason }),
  })
  return { presentTap, tagHash }
}

const zeroHash = `0x${'0'.repeat(64)}` as const

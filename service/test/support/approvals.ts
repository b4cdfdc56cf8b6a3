/** Requests for an act on chain, for tests of what approves them. */
import { databaseActs } from '../../src/access/approvals/acts.ts'
import { type Approvals, createApprovals } from '../../src/access/approvals/approvals.ts'
import { createLog } from '../../src/lib/log.ts'

type Options = Parameters<typeof createApprovals>[0]
export type ChainAct = Extract<Options['acts']['recycle'], { carryOut: unknown }>

export const notYet = { ok: false, isFinal: false, message: 'the operator key is missing' } as const

/** Approvals of an act on chain. What a process left unfinished is taken up at once. */
export function approvalsOnChain(database: Options['database'], act: Partial<ChainAct> = {}): Approvals {
  return createApprovals({
    database,
    required: new Set(['recycle']),
    hours: 1,
    acts: {
      ...databaseActs({ writeStatus: async () => {} }, async () => {}),
      recycle: {
        readFacts: async () => ({ nonce: 1 }),
        isBegun: async () => false,
        carryOut: async () => notYet,
        ...act,
      },
    },
    log: createLog(() => {}),
    leaseMs: 0,
  })
}

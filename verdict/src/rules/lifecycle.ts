/** Lifecycle states and flag bits of the on-chain record, and what a verdict says about them (spec §2.1, §3). */

/** The states in the order of their codes: `lifecycleStates[state_code]` is `state` (spec §3). */
export const lifecycleStates = ['NONE', 'MINTED', 'BOUND', 'ACTIVATED', 'CLAIMED', 'FLAGGED', 'RECYCLED'] as const

/** Name of a lifecycle state (spec §3). */
export type LifecycleState = (typeof lifecycleStates)[number]

/** Number of a lifecycle state, as stored on chain (spec §3). */
export type StateCode = 0 | 1 | 2 | 3 | 4 | 5 | 6

/** Bits of the record's `flags` byte (spec §2.5). TAMPER is a note of the tag, the others are reports. */
export const assetFlags = {
  LOST: 0x01,
  STOLEN: 0x02,
  RECALL: 0x04,
  STOLEN_CONFIRMED: 0x08,
  INVESTIGATION: 0x10,
  TAMPER: 0x20,
} as const

/** The flag bits that report an item lost, stolen or under recall investigation (spec §2.1 `flagged`). */
export const reportFlags: number = 0x1f

/** `flagged` of the verdict (spec §2.1): state FLAGGED, or any report bit. */
export function isFlagged({ state, flags }: { state: StateCode; flags: number }): boolean {
  return state === 5 || (flags & reportFlags) !== 0
}

/**
 * `authentic` of the verdict (spec §2.1): MINTED, BOUND, ACTIVATED or CLAIMED, and not flagged. Says nothing of a
 * physical item.
 */
export function isAuthentic({ state, flags }: { state: StateCode; flags: number }): boolean {
  return state >= 1 && state <= 4 && !isFlagged({ state, flags })
}

/** The tag reports an opened seal (spec §2.5). It is no report, and no member of the verdict says it. */
export function isSealOpened({ flags }: { flags: number }): boolean {
  return (flags & assetFlags.TAMPER) !== 0
}

/** Is this the number of a lifecycle state? */
export function isStateCode(value: unknown): value is StateCode {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 6
}

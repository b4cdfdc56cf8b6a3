/** The published history of attestation keys, kept in memory as the database has it (spec §4.8). */
import { attestationKeyId, checksumAddress, type Hex, type PublishedKey } from '@touchstone/verdict'

export type KeyStatus = PublishedKey['status']

/** Where the history is kept; addresses in lower case, times in unix seconds. */
export type KeyHistoryStore = {
  /** Oldest first. */
  readonly list: () => Promise<readonly Omit<PublishedKey, 'keyId'>[]>
  /** False when the key is known already. */
  readonly add: (key: Pick<PublishedKey, 'address' | 'validFrom' | 'status'>) => Promise<boolean>
  /** False when the key has none of the statuses `from`. */
  readonly change: (
    address: Hex,
    change: { from: readonly KeyStatus[]; to: KeyStatus; validUntil: number | null },
  ) => Promise<boolean>
}

export type KeyHistory = Awaited<ReturnType<typeof openKeyHistory>>

const freshMs = 30_000

/** `now` in milliseconds. */
export async function openKeyHistory({ store, now }: { readonly store: KeyHistoryStore; readonly now: () => number }) {
  let rows: readonly PublishedKey[] = []
  let readAt = 0
  let begun = 0
  let shown = 0
  let reading: Promise<void> | null = null

  async function read(): Promise<void> {
    const turn = (begun += 1)
    const found = await store.list()
    if (turn < shown) return // a read that began later, after a change, is shown already
    shown = turn
    rows = found.map(({ address, validFrom, validUntil, status }) => ({
      address: checksumAddress(address),
      keyId: attestationKeyId(address),
      validFrom,
      validUntil,
      status,
    }))
    readAt = now()
  }

  await read()
  return {
    read,
    /** From memory, without waiting. What is old is read anew for the next one who asks. */
    rows: (): readonly PublishedKey[] => {
      if (now() - readAt >= freshMs && reading === null) {
        // A database that fails makes itself heard where payments are written.
        reading = read()
          .catch(() => {})
          .finally(() => void (reading = null))
      }
      return rows
    },
    /** As the database has it now. */
    async find(keyId: string): Promise<PublishedKey | null> {
      await read()
      return rows.find((row) => row.keyId === keyId) ?? null
    },
    /** False when it is known already. */
    async add(address: Hex, { validFrom, status }: Pick<PublishedKey, 'validFrom' | 'status'>): Promise<boolean> {
      const added = await store.add({ address: address.toLowerCase() as Hex, validFrom, status })
      await read()
      return added
    },
    /** False when its status is none of `from`. */
    async change(
      address: Hex,
      from: readonly KeyStatus[],
      { status, validUntil }: { status: KeyStatus; validUntil: number | null },
    ): Promise<boolean> {
      const changed = await store.change(address.toLowerCase() as Hex, { from, to: status, validUntil })
      await read()
      return changed
    },
  }
}

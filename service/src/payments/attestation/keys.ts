/**
 * The rotation of attestation keys (spec §4.8, §8): add, publish, switch, keep the old key as retired; `revoked` for a stolen one. The private
 * half is in the source, the history in the database.
 */
import { attestationKeyId, type Hex, type PublishedKey } from '@touchstone/verdict'
import type { AttestationKey } from './attest.ts'
import type { Sql } from '../../db/database.ts'
import { createAgeClock } from '../../lib/async/age-clock.ts'
import { formatSecond } from '../../domain/text.ts'
import { singleFlight } from '../../lib/async/single-flight.ts'
import { openKeyHistory } from './history.ts'
import { openKeySource, type KeySource, type KeySourceOptions } from './source.ts'

/** The key after the change, or one sentence why nothing was changed. */
export type KeyChange = PublishedKey | { readonly refused: string }

export type AttestationKeys = Awaited<ReturnType<typeof openAttestationKeys>>

export type AttestationKeysOptions = KeySourceOptions & {
  readonly database: Sql
  /** False: no key is made, because this process does not sell. A second key would sign nothing, and be trusted all the same. */
  readonly mayMake?: boolean
  /** Milliseconds. */
  readonly now?: () => number
  /** Monotonic milliseconds, for the age of the copy in memory. */
  readonly ticks?: () => number
}

/** Verifiers read 200 keys. What is left is for the successors of revoked ones. */
const mostAnnounced = 180

/** Other processes may sign with a retired key until they reload the history. */
const graceSeconds = 120

/** Throws what `openAttestationKeys` and, for a process that sells, `active` would throw. It changes nothing; `database` null: it is not asked. */
export async function assertAttestationKeys({
  database,
  sells,
  ...options
}: KeySourceOptions & { readonly database: Sql | null; readonly sells: boolean }): Promise<void> {
  const source = await openKeySource(options, Math.floor(Date.now() / 1000))
  if (database === null) return
  const rows = (await openKeyHistory(database, createAgeClock())).rows()
  const newest = source.own().at(-1)?.key
  const row = rows.find(({ keyId }) => keyId === newest?.keyId)
  if (source.make === null && row !== undefined && !['next', 'active'].includes(row.status)) throw ended(row)
  const other = rows.findLast(({ status }) => status === 'active')
  if (sells && newest === undefined && other !== undefined) throw elsewhere(other, source)
}

/** Reads or makes the key that signs. Throws one sentence that says what to do. */
export async function openAttestationKeys({
  database,
  now = Date.now,
  ticks = createAgeClock(),
  mayMake = true,
  ...options
}: AttestationKeysOptions) {
  const seconds = () => Math.floor(now() / 1000)
  const source = await openKeySource(options, seconds())
  const reloadSource = singleFlight(() => source.reload())
  const history = await openKeyHistory(database, ticks)
  const activate = (address: Hex) => history.change(address, ['next', 'active'], { status: 'active', validUntil: null })
  const end = (address: Hex) =>
    history.change(address, ['next', 'active'], { status: 'retired', validUntil: seconds() + graceSeconds })

  await adoptNewest()
  // A second key would sign beside that of another instance, and be lost with a temporary folder.
  if (newestActive() === undefined) await ensureActive()

  /** Lists the newest key of this process. */
  async function adoptNewest(): Promise<void> {
    const newest = source.own().at(-1)
    if (newest === undefined) return
    const { key, made } = newest
    const row = await history.find(key.keyId)
    // New in the configuration, or a folder older than its database. Its older keys stay unlisted: one may have been revoked.
    if (row === null) await history.add(key.address, { validFrom: made, status: 'active' })
    else if (source.make === null && !(await activate(key.address))) throw ended(row)
  }

  /** Makes a key when the folder has none that signs. The operator provides configured keys. */
  async function ensureActive(): Promise<void> {
    if (!mayMake || source.make === null || signing() !== undefined) return
    const { key, made } = await source.make(seconds())
    await history.add(key.address, { validFrom: made, status: 'active' })
  }

  /** Returns the newest active key of this process. A key whose time has not begun signs nothing. */
  function signing(): AttestationKey | undefined {
    const active = history.rows().filter(({ status, validFrom }) => status === 'active' && validFrom <= seconds())
    return source.own().findLast(({ key }) => active.some(({ keyId }) => keyId === key.keyId))?.key
  }

  function newestActive(): PublishedKey | undefined {
    return history.rows().findLast(({ status }) => status === 'active')
  }

  /** Returns a key that cannot sign, so that the gateway rejects the buyer before money moves. */
  function unusable(): AttestationKey {
    const last = source.own().at(-1)?.key
    const other = newestActive()
    if (last === undefined)
      throw other === undefined ? new Error('There is no attestation key here.') : elsewhere(other, source)
    const row = history.rows().find(({ keyId, status }) => keyId === last.keyId && status === 'active')
    const cannotSign =
      row === undefined || row.validFrom <= seconds()
        ? `The attestation key ${last.keyId} may not sign now.`
        : notBegun(last.keyId, row.validFrom)
    return { ...last, cannotSign, sign: () => Promise.reject(new Error(cannotSign)) }
  }

  /** Announces a key: a new one in this folder, or the `address` of one that will be configured. */
  async function add(address?: Hex): Promise<KeyChange> {
    await history.read()
    if (history.rows().length >= mostAnnounced)
      return refused(
        `${history.rows().length} keys are listed, and no more is announced: verifiers read a list of 200. Revoke a stolen key; it gets a successor.`,
      )
    if (address === undefined) {
      if (source.make === null)
        return refused('The key of this service is configured, not made here: announce the next one by its address.')
      if (!mayMake)
        return refused(
          'No key is made here, because this process sells no attestations: run this where the gateway runs, or announce a key by its address.',
        )
      // A key with a file and without a row would sign from the next start on, unannounced.
      const { key } = await source.make(seconds(), ({ key: { address: newAddress }, made }) =>
        history.add(newAddress, { validFrom: made, status: 'next' }),
      )
      return stateOf(key.keyId)
    }
    if (options.isPublicKnowledge(address) && options.demo !== true)
      return refused('That key is publicly known (anvil’s): announce another one.')
    const keyId = attestationKeyId(address)
    if (!(await history.add(address, { validFrom: seconds(), status: 'next' })))
      return refused(`Key ${keyId} is listed already.`)
    return stateOf(keyId)
  }

  /** Changes a listed key. `change` returns why it changed nothing. */
  async function changeListed(
    keyId: string,
    change: (row: PublishedKey) => Promise<string | undefined>,
  ): Promise<KeyChange> {
    const row = await history.find(keyId)
    const refusal = row === null ? undefined : await change(row)
    return refusal === undefined ? stateOf(keyId) : refused(refusal)
  }

  async function stateOf(keyId: string): Promise<KeyChange> {
    return (await history.find(keyId)) ?? refused(`There is no key ${keyId}.`)
  }

  return {
    /** Returns the key that signs now. Its `sign` throws when it was revoked without a successor. Throws when there is no key here. */
    active: () => signing() ?? unusable(),
    /** Notices what other processes changed up to two seconds ago: a key that they revoked, and its successor. */
    refresh: async () => {
      await history.refresh()
      if (signing() === undefined) await reloadSource()
    },
    /** Returns the key that signs here; undefined where none does. */
    signing,
    /** Returns the address of the key that signs here, else of the newest one that signs elsewhere. */
    address: () => signing()?.address ?? newestActive()?.address ?? null,
    /** Adopts the keys and changes of other processes. */
    reload: async () => {
      await source.reload()
      await history.read()
    },
    /** Returns every key ever used or announced, oldest first, as the database had them at most 30 seconds ago. */
    published: history.published,
    add,

    /** Signs with an announced key of this folder from now on; the one before is retired. */
    switchTo: async (keyId: string): Promise<KeyChange> => {
      if (source.make === null)
        return refused(
          'The key of this service is configured: configure the next one, restart every process, then retire the one before.',
        )
      return changeListed(keyId, async ({ address, status, validFrom }) => {
        const own = source.own().map(({ key }) => key.keyId)
        // One whose time has not begun would sign in place of this key later.
        const before = history.rows().filter((row) => row.status === 'active' && own.includes(row.keyId))
        if (signing()?.keyId === keyId) return `Key ${keyId} signs already.`
        if (!own.includes(keyId)) return `The private half of ${keyId} is not in ${source.place}.`
        if (validFrom > seconds()) return notBegun(keyId, validFrom)
        if (!(await activate(address))) return `Key ${keyId} is ${status}: add a new one.`
        for (const row of before) if (row.keyId !== keyId) await end(row.address)
        return undefined
      })
    },

    /** Ends the window of a key that no longer signs. */
    retire: (keyId: string) =>
      changeListed(keyId, async ({ address, status }) => {
        if (signing()?.keyId === keyId) return `Key ${keyId} signs at the moment: switch to another one first.`
        return (await end(address)) ? undefined : `Key ${keyId} is ${status} already.`
      }),

    /** Invalidates every signature of a stolen key. `at` (unix seconds) is informative. */
    revoke: (keyId: string, at = seconds()) =>
      changeListed(keyId, async ({ address }) => {
        const from = ['next', 'active', 'retired'] as const
        if (!(await history.change(address, from, { status: 'revoked', validUntil: at })))
          return `Key ${keyId} is revoked already.`
        await ensureActive()
        return undefined
      }),
  }
}

function ended({ keyId, status }: PublishedKey): Error {
  return new Error(
    `The configured attestation key ${keyId} is ${status}, so its signatures are no longer valid: configure another one.`,
  )
}

function elsewhere({ keyId }: PublishedKey, { place }: KeySource): Error {
  return new Error(
    `The attestation key ${keyId} of this database is not in ${place}: copy it there, or set the same ATTESTATION_KEY everywhere. If it is lost, retire it by: touchstone attest key retire ${keyId}`,
  )
}

function notBegun(keyId: string, validFrom: number): string {
  return `The attestation key ${keyId} begins on ${formatSecond(validFrom)}: a clock was ahead when it was made. Make another one: touchstone attest key add, then switch.`
}

const refused = (sentence: string): KeyChange => ({ refused: sentence })

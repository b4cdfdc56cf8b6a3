/**
 * Which key signs attestations, which ones ever did, and how one follows another (spec §4.8, §8): add, publish, switch, keep the
 * old one as retired; `revoked` for a stolen one. The private half is in the source, the history in the database.
 */
import { attestationKeyId, type Hex, type PublishedKey } from '@touchstone/verdict'
import type { AttestationKey } from './attest.ts'
import { openKeyHistory, type KeyHistory, type KeyHistoryStore } from './keys-history.ts'
import { openKeySource, type KeySource, type KeySourceOptions } from './keys-source.ts'

/** What a key is now, or one sentence why nothing was changed. */
export type KeyChange = PublishedKey | { readonly refused: string }

export type AttestationKeys = {
  /** The key that signs now. Where it was revoked and there is no other, its `sign` throws; without any key here, it throws itself. */
  readonly active: () => AttestationKey
  /** Of the key that signs here, else of the newest one that signs elsewhere. */
  readonly address: () => Hex | null
  /** Takes over what other processes made and changed. */
  readonly reload: () => Promise<void>
  /** Every key ever used or announced, oldest first. From memory: changes by other processes follow within a minute of use. */
  readonly published: () => readonly PublishedKey[]
  /** Announces a key: a new one of this folder, or the `address` of one that will be configured. */
  readonly add: (address?: Hex) => Promise<KeyChange>
  /** Signs with an announced key of this folder from now on; the one before is retired. */
  readonly switchTo: (keyId: string) => Promise<KeyChange>
  /** Ends the window of a key that signs no more. */
  readonly retire: (keyId: string) => Promise<KeyChange>
  /** For a stolen key: nothing that it ever signed counts any more. `at` (unix seconds) is for people. */
  readonly revoke: (keyId: string, at?: number) => Promise<KeyChange>
}

export type AttestationKeysOptions = KeySourceOptions & {
  readonly history: KeyHistoryStore
  /** False: a folder without a key stays so. */
  readonly mayMake?: boolean
  /** Milliseconds. */
  readonly now?: () => number
}

/** Other processes may sign with a retired key until they have heard of it. */
const graceSeconds = 120

/** Reads, or makes, the key that signs. Whatever prevents it is an Error of one sentence that says what to do. */
export async function openAttestationKeys({
  history: store,
  now = Date.now,
  mayMake = true,
  ...options
}: AttestationKeysOptions): Promise<AttestationKeys> {
  const seconds = () => Math.floor(now() / 1000)
  const source = await openKeySource(options, seconds())
  const history = await openKeyHistory({ store, now })
  await begin({ source, history, mayMake }, seconds())

  /** The newest of the own keys that are active. */
  function signing(): AttestationKey | undefined {
    const active = history.rows().filter(({ status }) => status === 'active')
    return source.own().findLast(({ key }) => active.some(({ keyId }) => keyId === key.keyId))?.key
  }

  async function stateOf(keyId: string): Promise<KeyChange> {
    return (await history.find(keyId)) ?? unknown(keyId)
  }

  async function add(address?: Hex): Promise<KeyChange> {
    if (address === undefined) {
      if (source.make === null)
        return refused('The key of this service is configured, not made here: announce the next one by its address.')
      const { key, made } = await source.make(seconds())
      await history.add(key.address, { validFrom: made, status: 'next' })
      return stateOf(key.keyId)
    }
    if (options.isPublicKnowledge(address) && options.demo !== true)
      return refused('That key is one that everybody has (anvil’s): announce another one.')
    const keyId = attestationKeyId(address)
    const added = await history.add(address, { validFrom: seconds(), status: 'next' })
    return added ? stateOf(keyId) : refused(`Key ${keyId} is listed already.`)
  }

  async function switchTo(keyId: string): Promise<KeyChange> {
    if (source.make === null)
      return refused(
        'The key of this service is configured: configure the next one, restart every process, then retire the one before.',
      )
    const row = await history.find(keyId)
    if (row === null) return unknown(keyId)
    const before = signing()
    if (before?.keyId === keyId) return refused(`Key ${keyId} signs already.`)
    if (!source.own().some(({ key }) => key.keyId === keyId))
      return refused(`The private half of ${keyId} is not in this data folder.`)
    if (!(await history.change(row.address, ['next', 'active'], { status: 'active', validUntil: null })))
      return refused(`Key ${keyId} is ${row.status}: add a new one.`)
    if (before !== undefined) await end(before.address)
    return stateOf(keyId)
  }

  async function retire(keyId: string): Promise<KeyChange> {
    const row = await history.find(keyId)
    if (row === null) return unknown(keyId)
    if (signing()?.keyId === keyId) return refused(`Key ${keyId} signs at the moment: switch to another one first.`)
    return (await end(row.address)) ? stateOf(keyId) : refused(`Key ${keyId} is ${row.status} already.`)
  }

  const end = (address: Hex) =>
    history.change(address, ['next', 'active'], { status: 'retired', validUntil: seconds() + graceSeconds })

  async function revoke(keyId: string, at = seconds()): Promise<KeyChange> {
    const row = await history.find(keyId)
    if (row === null) return unknown(keyId)
    const from = ['next', 'active', 'retired'] as const
    if (!(await history.change(row.address, from, { status: 'revoked', validUntil: at })))
      return refused(`Key ${keyId} is revoked already.`)
    await ensureActive({ source, history }, seconds())
    return stateOf(keyId)
  }

  return {
    active: () => signing() ?? unusable(source, elsewhere(history), options.folder),
    address: () => signing()?.address ?? elsewhere(history)?.address ?? null,
    reload: async () => {
      await source.reload()
      await history.read()
    },
    published: history.rows,
    add,
    switchTo,
    retire,
    revoke,
  }
}

type Both = { readonly source: KeySource; readonly history: KeyHistory }

async function begin(
  { source, history, mayMake }: Both & { readonly mayMake: boolean },
  seconds: number,
): Promise<void> {
  const newest = source.own().at(-1)
  if (newest !== undefined) {
    const { key, made } = newest
    const row = await history.find(key.keyId)
    // New in the configuration; or a folder that outlived its database. Older keys of it stay unlisted: one may have been revoked.
    if (row === null) await history.add(key.address, { validFrom: made, status: 'active' })
    else if (
      source.make === null &&
      !(await history.change(key.address, ['next', 'active'], { status: 'active', validUntil: null }))
    )
      throw new Error(
        `The configured attestation key ${key.keyId} is ${row.status}, so its signatures count no more: configure another one.`,
      )
  }
  // A second key would sign beside that of another instance, and be gone with a folder that nobody keeps.
  if (mayMake && elsewhere(history) === undefined) await ensureActive({ source, history }, seconds)
}

function elsewhere(history: KeyHistory): PublishedKey | undefined {
  return history.rows().findLast(({ status }) => status === 'active')
}

/** A folder always has a key that signs; a configured key is the operator's affair. */
async function ensureActive({ source, history }: Both, seconds: number): Promise<void> {
  const active = history.rows().filter(({ status }) => status === 'active')
  if (source.make === null || source.own().some(({ key }) => active.some(({ keyId }) => keyId === key.keyId))) return
  const { key, made } = await source.make(seconds)
  await history.add(key.address, { validFrom: made, status: 'active' })
}

/** What the gateway finds where no key may sign: it says so to the buyer, before money moves. */
function unusable(source: KeySource, other: PublishedKey | undefined, folder: string): AttestationKey {
  const last = source.own().at(-1)?.key
  if (last === undefined)
    throw new Error(
      other === undefined
        ? 'There is no attestation key here.'
        : `The attestation key ${other.keyId} of this database is not in ${folder}: copy its file there, or set the same ATTESTATION_KEY everywhere; when it is lost, retire it by: touchstone attest key retire ${other.keyId}`,
    )
  const refuse = () => Promise.reject(new Error(`attestation key ${last.keyId} may not sign any more`))
  return { ...last, sign: refuse, signTypedData: refuse }
}

function unknown(keyId: string): KeyChange {
  return refused(`There is no key ${keyId}.`)
}

function refused(sentence: string): KeyChange {
  return { refused: sentence }
}

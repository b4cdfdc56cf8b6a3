/**
 * The issuer's signing keys as one JWK Set text (RFC 7517), which the caller stores. Rotation adds keys and never removes one. The private
 * halves are in the text, or in a key store that names them `issuer-key-1` and up. The gateway's secp256k1 key is rejected: one key,
 * one purpose.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  verify,
  type JsonWebKey,
  type KeyObject,
} from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { KeyStore, SigningKey } from '../../keys/key.ts'
import { isObject, parseJson, type JsonObject } from '../../lib/json.ts'

const algorithms = { ES256: { kty: 'EC', crv: 'P-256' }, Ed25519: { kty: 'OKP', crv: 'Ed25519' } } as const
export type Algorithm = keyof typeof algorithms
/** `active` signs; `retired` only verifies; `revoked` (compromised) is listed and verifies nothing. */
type KeyStatus = 'active' | 'retired' | 'revoked'
type PublicJwk = { readonly kty: string; readonly crv: string; readonly x: string; readonly y?: string }

export type IssuerKey = {
  /** Fragment of the verification method, `key-1` and up. */
  readonly id: string
  readonly algorithm: Algorithm
  readonly status: KeyStatus
  readonly publicJwk: PublicJwk
  /**
   * Signs a message and returns 64 bytes: ECDSA over its SHA-256, or Ed25519. Null where only the public half is known: enough for a key that
   * no longer signs.
   */
  readonly sign: ((message: Uint8Array) => Promise<Uint8Array>) | null
  /** Time of revocation, ISO 8601. */
  readonly revoked: string | null
}
/** The keys of a text, or the reason why it is rejected; a reason never quotes the text. */
export type IssuerKeys =
  | { readonly ok: true; readonly keys: readonly IssuerKey[] }
  | { readonly ok: false; readonly reason: string }

const maxLength = 131_072
const maxKeys = 200
/** A rotation leaves room for revocations, each of which can add a key. */
const maxRotatedKeys = 180

/** The private halves in a key store, by `kid`. */
type StoredKeys = ReadonlyMap<string, SigningKey>

/** Parses a JWK Set, or a single JWK as `key-1`. At most one active key an algorithm. Public keys sign with their half in `stored`. */
export function parseIssuerKeys(text: string, stored: StoredKeys = new Map()): IssuerKeys {
  if (text.length > maxLength) return failure('The issuer key text is too long.')
  const members = parseMembers(text)
  if (members === null) return failure('The issuer key text is neither a JWK Set nor a JWK.')
  if (members.length > maxKeys) return failure('The issuer key text holds too many keys.')
  const keys: IssuerKey[] = []
  for (const [index, member] of members.entries()) {
    const key = parseKey(member, `key-${index + 1}`, stored)
    if (typeof key === 'string') return failure(`Issuer key ${index + 1}: ${key}`)
    if (keys.some(({ id }) => id === key.id)) return failure(`Issuer key ${index + 1}: its kid is used twice.`)
    if (key.status === 'active' && keys.some((other) => other.status === 'active' && other.algorithm === key.algorithm))
      return failure(`Issuer key ${index + 1}: another key of its algorithm is active.`)
    keys.push(key)
  }
  return { ok: true, keys }
}

/** Returns the text of a new pair of keys: `key-1` for ES256 (JWS), `key-2` for Ed25519 (embedded proof). It is secret without a key store. */
export async function generateIssuerKeys(store: KeyStore | null = null): Promise<string> {
  return setText(await newKeys(1, store))
}

/** A change of the keys. `retire` and `revoke` name one key; `at` is the ISO 8601 time from which its signatures count for nothing. */
export type IssuerKeyChange =
  | { readonly kind: 'rotate' }
  | { readonly kind: 'retire'; readonly id: string }
  | { readonly kind: 'revoke'; readonly id: string; readonly at: string }

/**
 * Returns the text after a change, or why there is none. `rotate` retires the active keys and adds new ones. A revoked key that signed gets a
 * successor of its algorithm. The active ES256 key and the last active key are not retired, because status lists are signed as long as
 * certificates and passports live.
 */
export async function changeIssuerKeys(
  text: string,
  change: IssuerKeyChange,
  store: KeyStore | null = null,
): Promise<string | { readonly refused: string }> {
  const stored = await storedIssuerKeys(store)
  const parsed = parseIssuerKeys(text, stored)
  if (!parsed.ok) return { refused: parsed.reason }
  const { keys } = parsed
  const members = parseMembers(text) ?? []
  const refused = change.kind === 'rotate' ? rotationRefusalOf(keys) : refusalOf(keys, change)
  if (refused !== null) return { refused }
  const kept = keys.map(({ id, status }, index) => {
    const member = { ...members[index], kid: id }
    if (change.kind === 'rotate') return status === 'active' ? { ...member, status: 'retired' } : member
    if (change.id !== id) return member
    return change.kind === 'retire'
      ? { ...member, status: 'retired' }
      : { ...member, status: 'revoked', revoked: change.at }
  })
  // A key store may have keys that no text names any more: a backup from before was restored. One of them may have been revoked.
  const ids = [...keys.map(({ id }) => id), ...[...stored.keys()].filter(isIssuerKeyId)]
  const next = Math.max(...ids.map((id) => Number(id.slice(4)))) + 1
  const former = change.kind === 'revoke' ? keys.find(({ id }) => id === change.id) : undefined
  if (change.kind === 'rotate') return setText([...kept, ...(await newKeys(next, store))])
  const hasSuccessor = former?.status === 'active' && kept.length < maxKeys
  return setText(hasSuccessor ? [...kept, await newKey(former.algorithm, `key-${next}`, store)] : kept)
}

function rotationRefusalOf({ length }: readonly IssuerKey[]): string | null {
  if (length + 2 <= maxRotatedKeys) return null
  return `There are ${length} keys, and a rotation makes no more than ${maxRotatedKeys}. Revoke a stolen key; it gets a successor.`
}

function refusalOf(
  keys: readonly IssuerKey[],
  { kind, id }: Exclude<IssuerKeyChange, { kind: 'rotate' }>,
): string | null {
  const key = keys.find((one) => one.id === id)
  if (key === undefined) return `There is no key ${id}.`
  if (key.status === 'revoked' || (kind === 'retire' && key.status === 'retired'))
    return `Key ${id} is ${key.status} already.`
  if (kind === 'revoke') return null
  if (key.algorithm === 'ES256')
    return `Key ${id} is the only one that signs certificates and their status lists: rotate the keys instead.`
  const isLast = keys.every((one) => one.id === id || one.status !== 'active')
  return isLast ? `Key ${id} is the only one that signs: rotate the keys instead.` : null
}

/** Reads the issuer keys of a key store by `kid`. */
export async function storedIssuerKeys(store: KeyStore | null): Promise<StoredKeys> {
  const keys = (await store?.signingKeys(storedPrefix)) ?? []
  return new Map(keys.map((key) => [key.name.slice(storedPrefix.length), key]))
}

/** Precedes the `kid` in the name of a key in a key store. */
const storedPrefix = 'issuer-'

function parseMembers(text: string): readonly JsonObject[] | null {
  const value = parseJson(text)
  if (!isObject(value)) return null
  const members = 'kty' in value ? [value] : value['keys']
  return Array.isArray(members) && members.length > 0 && members.every(isObject) ? members : null
}

/** Returns whether text is the name of an issuer key: key- and a number. */
export const isIssuerKeyId = (text: string): boolean => /^key-[1-9]\d{0,5}$/.test(text)

/** Returns the key, or a sentence about its fault. */
function parseKey(member: JsonObject, fallbackId: string, stored: StoredKeys): IssuerKey | string {
  const { kid: id = fallbackId, status = 'active', kty, crv, x, y, d, revoked = null } = member
  if (crv === 'secp256k1') return 'secp256k1 is the gateway curve; the issuer needs its own P-256 or Ed25519 key.'
  const algorithm = crv === 'P-256' ? 'ES256' : crv === 'Ed25519' ? 'Ed25519' : null
  if (algorithm === null || algorithms[algorithm].kty !== kty) return 'only P-256 (EC) and Ed25519 (OKP) keys can sign.'
  if (typeof id !== 'string' || !isIssuerKeyId(id)) return 'its kid is not key- and a number.'
  if (status !== 'active' && status !== 'retired' && status !== 'revoked') return 'its status is unknown.'
  if (typeof x !== 'string' || (algorithm === 'ES256') !== (typeof y === 'string'))
    return 'its public half is incomplete.'
  const storedKey = typeof d === 'string' ? undefined : stored.get(id)
  if (status === 'active' && typeof d !== 'string' && storedKey === undefined)
    return stored.size === 0
      ? 'an active key needs its private half.'
      : `an active key needs its private half: ${storedPrefix}${id} is not in the PKCS#11 token.`
  if (revoked !== null && (typeof revoked !== 'string' || Number.isNaN(Date.parse(revoked))))
    return 'revoked is no time.'
  const publicJwk: PublicJwk = { ...algorithms[algorithm], x, ...(typeof y === 'string' && { y }) }
  const publicKey = keyFrom(createPublicKey, publicJwk)
  if (publicKey === null) return 'its public half is no key.'
  const privateKey = typeof d === 'string' ? keyFrom(createPrivateKey, { ...publicJwk, d }) : null
  if (typeof d === 'string' && (privateKey === null || !isPair(privateKey, publicKey)))
    return 'its halves do not belong together.'
  if (storedKey !== undefined && !isDeepStrictEqual(publicJwk, jwkOf(storedKey)))
    return `${storedPrefix}${id} of the PKCS#11 token is another key.`
  const sign = privateKey === null ? storedSign(storedKey) : localSign(privateKey)
  return { id, algorithm, status, publicJwk, sign, revoked }
}

function localSign(key: KeyObject): IssuerKey['sign'] {
  const digest = key.asymmetricKeyType === 'ec' ? 'sha256' : null
  return async (message) => Uint8Array.from(sign(digest, message, { key, dsaEncoding: 'ieee-p1363' }))
}

function storedSign(key: SigningKey | undefined): IssuerKey['sign'] {
  if (key === undefined) return null
  return (message) => key.sign(key.curve === 'P-256' ? createHash('sha256').update(message).digest() : message)
}

function jwkOf({ curve, publicKey }: SigningKey): PublicJwk {
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')
  if (curve === 'Ed25519') return { kty: 'OKP', crv: curve, x: text(publicKey) }
  return { kty: 'EC', crv: curve, x: text(publicKey.subarray(1, 33)), y: text(publicKey.subarray(33)) }
}

function keyFrom(
  create: (input: { key: JsonWebKey; format: 'jwk' }) => KeyObject,
  jwk: PublicJwk & { readonly d?: string },
): KeyObject | null {
  try {
    return create({ key: { ...jwk }, format: 'jwk' })
  } catch {
    return null
  }
}

/** Tries a signature: Node accepts a P-256 JWK whose halves are of two keys. */
function isPair(privateKey: KeyObject, publicKey: KeyObject): boolean {
  const digest = privateKey.asymmetricKeyType === 'ec' ? 'sha256' : null
  const probe = Buffer.from('issuer key')
  return verify(digest, probe, publicKey, sign(digest, probe, privateKey))
}

/** Makes the keys `key-{first}` and the next one. A token without Ed25519 gets the key for ES256 only. */
async function newKeys(first: number, store: KeyStore | null): Promise<JsonObject[]> {
  const es256 = await newKey('ES256', `key-${first}`, store)
  if (store !== null && !(await store.supports('Ed25519'))) return [es256]
  return [es256, await newKey('Ed25519', `key-${first + 1}`, store)]
}

async function newKey(algorithm: Algorithm, kid: string, store: KeyStore | null): Promise<JsonObject> {
  const settings = { alg: algorithm, kid, status: 'active' }
  if (store !== null) {
    const [name, { crv }] = [`${storedPrefix}${kid}`, algorithms[algorithm]]
    // A crash after the key was made, and before the text was stored, leaves a key that no text names.
    const key = (await store.signingKey(name)) ?? (await store.generateSigningKey(name, crv))
    return { ...jwkOf(key), ...settings }
  }
  const { privateKey } =
    algorithm === 'ES256' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('ed25519')
  return { ...privateKey.export({ format: 'jwk' }), ...settings }
}

function setText(keys: readonly JsonObject[]): string {
  return `${JSON.stringify({ keys }, null, 2)}\n`
}

function failure(reason: string): IssuerKeys {
  return { ok: false, reason }
}

/**
 * Checks the success body of `POST /verify` (spec §4.8), every field, against keys and a contract that you trust.
 * Sends no request.
 */
import { type Check, compare, fails, pin, reportOf, undecided } from '../check/report.ts'
import { type Hex, isBytes } from '../lib/hex.ts'
import { isObject, isSameJson } from '../lib/json.ts'
import { isAddress } from '../rules/address.ts'
import { isAuthentic, isFlagged, lifecycleStates, reportFlags, type StateCode } from '../rules/lifecycle.ts'
import { askedTokenId } from '../rules/token-id.ts'
import { verdictChainId } from '../rules/verdict.ts'
import { easAttestation, easDigest } from './eas.ts'
import { type TypedData, typedDataDigest } from './eip712.ts'
import { type Parts, readAttestation, type Reading, type Statement } from './form.ts'
import { attestationKeyId, readPublishedKeys } from './keys.ts'
import { attestationSigner } from './signer.ts'
import { attestationDigest, attestationTypedData } from './v1.ts'
import { type AssetAttestation, assetAttestationTypedData } from './v2.ts'

/** Whom and what you trust, from a source other than the answer itself. One of `signer` and `keys` is needed. */
export type AttestationTrust = Readonly<{
  /** The address that must have signed. */
  signer?: Hex | undefined
  /** The parsed `/.well-known/attestation.json` of the gateway you trust, or its list of keys. */
  keys?: unknown
  /** The token you asked about. If left out, the token of the answer is not checked. */
  tokenId?: bigint | string | undefined
  /** The core contract you trust. Left out, it is the one that the document of `keys` names; a list of keys and a signer name none. */
  contract?: Hex | undefined
  /** Oldest acceptable attestation in seconds, 300 by default; `Infinity` for one that was kept. */
  maxAgeSeconds?: number | undefined
  /** The time of the check in unix seconds, the clock's by default. */
  now?: number | undefined
}>

/** The signed facts. The old form leaves out the last four. */
export type Attested = Statement &
  Readonly<{
    signer: Hex
    authentic?: boolean
    flagged?: boolean
    flags?: number
    /** `null` when the token has no owner. */
    ownerCommitment?: Hex | null
  }>

/** A field of the answer that the old form shows without signing it. */
export type UnsignedField = (typeof unsignedFields)[number]
const unsignedFields = ['authentic', 'flagged'] as const

/**
 * All comparisons. `agrees`: everything shown is signed by a signer you trust. `undecided`: an answer in the old form
 * agrees as far as it is signed; anyone may have changed the fields in `unsigned`. `differs`: do not rely on it.
 */
export type AttestationReport =
  | Readonly<{ ok: true; outcome: 'agrees'; checks: readonly Check[]; unsigned: readonly []; attested: Attested }>
  | Readonly<{ ok: false; outcome: 'undecided'; checks: readonly Check[]; unsigned: Unsigned; attested: Attested }>
  | Readonly<{ ok: false; outcome: 'differs'; checks: readonly Check[]; unsigned: Unsigned }>
type Unsigned = readonly UnsignedField[]

/** How far the gateway's clock may be ahead of ours, in seconds. */
const clockTolerance = 60

/**
 * Checks a parsed success body of the gateway: its form, and that all fields agree with what is signed. Every signature
 * (65 bytes, low s) is by one signer. That signer and its time are checked against `trust`. Takes any value and never
 * throws.
 *
 * `payment` is not signed: it may be left out of what is kept. Without `attestation.v2` the answer has the old form.
 */
export function verifyAttestation(body: unknown, trust: AttestationTrust): AttestationReport {
  const { checks: formChecks, reading } = readAttestation(body)
  if (reading === null) return { ok: false, outcome: 'differs', checks: formChecks, unsigned: unsignedFields }
  const { statement, facts, parts } = reading
  const signer = signerOf(attestationDigest(statement), parts.attestation['signature'])
  const checks = [
    ...formChecks,
    ...bodyChecks(reading),
    ...attestationChecks(reading, signer),
    ...trustChecks({ statement, signer }, trust),
  ]
  const { outcome } = reportOf(checks)
  const unsigned = facts === null ? unsignedFields : []
  if (outcome === 'differs' || signer === null) return { ok: false, outcome: 'differs', checks, unsigned }
  if (facts === null) return { ok: false, outcome: 'undecided', checks, unsigned, attested: { ...statement, signer } }
  const { flags, ownerCommitment } = facts
  const shown = { authentic: isAuthentic(facts), flagged: isFlagged(facts) }
  const attested = { ...statement, ...shown, flags, ownerCommitment, signer }
  return { ok: true, outcome: 'agrees', checks, unsigned: [], attested }
}

/** The plain fields say what is signed. */
function bodyChecks({ parts: { body, chainRef }, statement, facts }: Reading): Check[] {
  const { tokenId, state, blockNumber, blockHash, verifyingContract } = statement
  const expected = {
    version: '1',
    assetId: String(tokenId),
    chain: 'base-sepolia',
    state: lifecycleStates[state],
    state_code: state,
    ...(facts !== null && { authentic: isAuthentic(facts), flagged: isFlagged(facts) }),
    network: 'base-sepolia',
    audit_status: 'unaudited',
    production_ready: false,
  }
  const expectedRef = {
    chain_id: verdictChainId,
    contract: verifyingContract,
    token_id: String(tokenId),
    block_number: Number(blockNumber),
    block_hash: blockHash,
  }
  return [
    ...Object.entries(expected).map(([field, value]) => compare(field, body[field], value)),
    ...Object.entries(expectedRef).map(([field, value]) => compare(`chainRef.${field}`, chainRef[field], value)),
    ...(facts === null ? unsignedChecks(body, state) : []),
  ]
}

/** The old form signs the state only: it excludes some values of these fields, and confirms none. */
function unsignedChecks({ authentic, flagged }: Parts['body'], state: StateCode): Check[] {
  const isPossible = [0, reportFlags].some(
    (flags) => authentic === isAuthentic({ state, flags }) && flagged === isFlagged({ state, flags }),
  )
  return Object.entries({ authentic, flagged }).map(([field, value]) =>
    isPossible ? undecided(field, value, 'not signed in this form') : fails(field, value, 'impossible in this state'),
  )
}

/** Each form says what is expected, and is signed by the one who is named. */
function attestationChecks({ parts, statement, facts }: Reading, rawSigner: Hex | null): Check[] {
  const { attestation, typed, v2, eas } = parts
  const { tokenId, state, chainId, timestamp } = statement
  const claimed = attestation['signer']
  const signer = isAddress(claimed) ? claimed.toLowerCase() : claimed
  const found = rawSigner ?? noSignature
  return [
    same('attestation.message', attestation['message'], { tokenId: String(tokenId), state, chainId, timestamp }),
    compare('attestation.encoding', attestation['encoding'], 'abi.encode(uint256,uint8,uint256,uint64)'),
    compare('attestation.digest', attestation['digest'], attestationDigest(statement)),
    compare('attestation.signature', signer, found),
    compare('attestation.keyId', attestation['keyId'], rawSigner === null ? found : attestationKeyId(rawSigner)),
    ...typedChecks('attestation.eip712', typed, attestationTypedData(statement), signer),
    ...(v2 === null || facts === null
      ? []
      : typedChecks('attestation.v2', v2, assetAttestationTypedData(facts), signer)),
    ...(eas === null || facts === null ? [] : easChecks(eas, facts, claimed)),
  ]
}

/** The EAS attestation is the one that follows from the facts and its own signature. */
function easChecks(eas: unknown, facts: AssetAttestation, claimed: unknown): Check[] {
  const field = 'attestation.eas'
  const sig = isObject(eas) && isObject(eas['sig']) ? eas['sig'] : {}
  const { r, s, v } = isObject(sig['signature']) ? sig['signature'] : {}
  if (!isAddress(claimed) || !isBytes(r, 32) || !isBytes(s, 32) || (v !== 27 && v !== 28))
    return [fails(field, eas, noSignature)]
  const signature: Hex = `0x${r.slice(2)}${s.slice(2)}${v.toString(16)}`
  return [
    same(field, eas, easAttestation(facts, { signer: claimed, signature })),
    compare(`${field}.signature`, claimed.toLowerCase(), signerOf(easDigest(facts), signature) ?? noSignature),
  ]
}

function typedChecks(field: string, given: Parts['typed'], expected: TypedData, signer: unknown): Check[] {
  return [
    same(`${field}.domain`, lowerContract(given['domain']), lowerContract(expected.domain)),
    same(`${field}.types`, given['types'], expected.types),
    compare(`${field}.primaryType`, given['primaryType'], expected.primaryType),
    same(`${field}.message`, given['message'], expected.message),
    compare(`${field}.signature`, signer, signerOf(typedDataDigest(expected), given['signature']) ?? noSignature),
  ]
}

const noSignature = 'no signature of 65 bytes with low s'

/** Is the signer one whom the caller trusts, now and for this token? */
function trustChecks(
  { statement, signer }: { statement: Statement; signer: Hex | null },
  { signer: trusted, keys, tokenId, contract, maxAgeSeconds = 300, now = Date.now() / 1000 }: AttestationTrust,
): Check[] {
  const { timestamp } = statement
  const age = Math.floor(now - timestamp)
  const young = age <= maxAgeSeconds && age >= -clockTolerance
  const checks = [
    pin('token asked for', String(statement.tokenId), tokenId === undefined ? undefined : askedTokenId(tokenId)),
    pin('contract trusted', statement.verifyingContract, contract ?? contractOf(keys)),
    { field: 'age', ok: young, claimed: `${age} s`, found: `at most ${maxAgeSeconds} s` },
  ]
  if (trusted === undefined && keys === undefined)
    checks.push(fails('signer trusted', signer, 'no trusted signer was given'))
  if (trusted !== undefined) checks.push(pin('signer trusted', signer ?? 'none', trusted))
  if (keys !== undefined) checks.push(publishedCheck(keys, { signer, timestamp, now }))
  return checks
}

/** Returns the contract that the published document names; undefined where it names none. */
function contractOf(document: unknown): string | undefined {
  const named = isObject(document) ? document['contract'] : undefined
  return named === undefined || typeof named === 'string' ? named : 'no address'
}

/** A key counts when it is active or retired and its time has begun. The attestation must be issued in its time. */
function publishedCheck(
  document: unknown,
  { signer, timestamp, now }: { signer: Hex | null; timestamp: number; now: number },
): Check {
  const keys = readPublishedKeys(document)
  const field = 'key published'
  if (keys === null) return fails(field, signer, 'the published keys cannot be read')
  const own = keys.filter(({ address }) => address.toLowerCase() === signer)
  if (own.length === 0) return fails(field, signer, 'not a published key')
  if (own.some(({ status }) => status === 'revoked')) return fails(field, signer, 'a revoked key')
  const begun = own.filter(({ status, validFrom }) => status !== 'next' && validFrom <= now)
  if (begun.length === 0) return fails(field, signer, 'an announced key that does not sign yet; get the keys again')
  const inWindow = begun.some(
    ({ validFrom, validUntil }) => timestamp >= validFrom && (validUntil === null || timestamp <= validUntil),
  )
  return inWindow
    ? { field, ok: true, claimed: String(signer), found: 'a published key, in its time' }
    : fails(field, signer, 'a published key, outside its time')
}

function signerOf(digest: Hex, signature: unknown): Hex | null {
  return isBytes(signature, 65) ? attestationSigner(digest, signature) : null
}

/** Structures are compared whole; the report names them only. */
function same(field: string, claimed: unknown, expected: unknown): Check {
  const ok = isSameJson(claimed, expected)
  return { field, ok, claimed: 'an object', found: ok ? 'the same' : 'another' }
}

/** An address may be written in any case of letters. */
function lowerContract(domain: unknown): unknown {
  if (!isObject(domain) || !isAddress(domain['verifyingContract'])) return domain
  return { ...domain, verifyingContract: domain['verifyingContract'].toLowerCase() }
}

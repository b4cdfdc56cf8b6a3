/**
 * Checks the success body of `POST /verify` (spec §4.8), every field, against keys and a contract that you trust.
 * Sends no request.
 */
import { isAddress } from './address.ts'
import { attestationDigest, attestationSigner, attestationTypedData, attestationTypedDigest } from './attestation.ts'
import { attestationKeyId, readPublishedKeys } from './attestation-keys.ts'
import { type Parts, readAttestation, type Statement } from './attestation-form.ts'
import { type Hex, isBytes } from './hex.ts'
import { isObject, isSameJson } from './json.ts'
import { isAuthentic, lifecycleStates } from './lifecycle.ts'
import { type Check, compare, fails, pin, reportOf } from './report.ts'
import { parseTokenId } from './token-id.ts'
import { verdictChainId } from './verdict.ts'

/** Whom and what you trust, from a source other than the answer itself. One of `signer` and `keys` is needed. */
export type AttestationTrust = Readonly<{
  /** The address that must have signed. */
  signer?: Hex | undefined
  /** The parsed `/.well-known/attestation.json` of the gateway you trust, or its list of keys. */
  keys?: unknown
  /** The token you asked about. If left out, the token of the answer is not checked. */
  tokenId?: bigint | string | undefined
  /** The core contract you trust. */
  contract?: Hex | undefined
  /** Oldest acceptable attestation in seconds, 300 by default; `Infinity` for one that was kept. */
  maxAgeSeconds?: number | undefined
  /** The time of the check in unix seconds, the clock's by default. */
  now?: number | undefined
}>

/** The fields that both signatures cover. */
export type Attested = Statement & Readonly<{ signer: Hex }>

/** All comparisons; `attested` only when every one succeeded. */
export type AttestationReport =
  | Readonly<{ ok: true; checks: readonly Check[]; attested: Attested }>
  | Readonly<{ ok: false; checks: readonly Check[] }>

/** How far the gateway's clock may be ahead of ours, in seconds. */
const clockTolerance = 60
/**
 * Checks a parsed success body of the gateway: form, agreement of all fields, the raw and the EIP-712 signature (65 bytes,
 * low s) by one signer, that signer and its time against `trust`. Takes any value and never throws.
 *
 * `flagged` is not signed beyond the state, and `payment` is not signed at all: it may be left out of what is kept.
 */
export function verifyAttestation(body: unknown, trust: AttestationTrust): AttestationReport {
  const { checks: formChecks, statement, parts } = readAttestation(body)
  if (statement === null || parts === null) return { ok: false, checks: formChecks }
  const rawSigner = signerOf(attestationDigest(statement), parts.attestation['signature'])
  const typedSigner = signerOf(attestationTypedDigest(statement), parts.typed['signature'])
  const checks = [
    ...formChecks,
    ...bodyChecks(parts, statement),
    ...attestationChecks(parts, statement, { rawSigner, typedSigner }),
    ...trustChecks({ statement, signer: rawSigner }, trust),
  ]
  const { ok } = reportOf(checks)
  return ok && rawSigner !== null
    ? { ok, checks, attested: { ...statement, signer: rawSigner } }
    : { ok: false, checks }
}

/** The fields of the verdict agree with one another and with the specification. */
function bodyChecks({ body, chainRef }: Parts, statement: Statement): Check[] {
  const { tokenId, state } = statement
  const flagged = state === 5 || body['flagged'] === true
  const expected = {
    version: '1',
    assetId: String(tokenId),
    chain: 'base-sepolia',
    state: lifecycleStates[state],
    authentic: isAuthentic({ state, flags: 0 }) && !flagged,
    flagged,
    network: 'base-sepolia',
    audit_status: 'unaudited',
    production_ready: false,
  }
  const expectedRef = {
    chain_id: verdictChainId,
    contract: statement.verifyingContract,
    token_id: String(tokenId),
  }
  return [
    ...Object.entries(expected).map(([field, value]) => compare(field, body[field], value)),
    ...Object.entries(expectedRef).map(([field, value]) => compare(`chainRef.${field}`, chainRef[field], value)),
  ]
}

/** Both forms say the same as the plain fields, and both are signed by the one who is named. */
function attestationChecks(
  { attestation, typed }: Parts,
  statement: Statement,
  { rawSigner, typedSigner }: { rawSigner: Hex | null; typedSigner: Hex | null },
): Check[] {
  const { tokenId, state, chainId, timestamp } = statement
  const expected = attestationTypedData(statement)
  const claimed = attestation['signer']
  const signer = isAddress(claimed) ? claimed.toLowerCase() : claimed
  const found = rawSigner ?? 'no signature of 65 bytes with low s'
  return [
    same('attestation.message', attestation['message'], { tokenId: String(tokenId), state, chainId, timestamp }),
    compare('attestation.encoding', attestation['encoding'], 'abi.encode(uint256,uint8,uint256,uint64)'),
    compare('attestation.digest', attestation['digest'], attestationDigest(statement)),
    compare('attestation.signature', signer, found),
    compare('attestation.keyId', attestation['keyId'], rawSigner === null ? found : attestationKeyId(rawSigner)),
    same('attestation.eip712.domain', lowerContract(typed['domain']), lowerContract(expected.domain)),
    same('attestation.eip712.types', typed['types'], expected.types),
    compare('attestation.eip712.primaryType', typed['primaryType'], expected.primaryType),
    same('attestation.eip712.message', typed['message'], expected.message),
    compare('attestation.eip712.signature', signer, typedSigner ?? 'no signature of 65 bytes with low s'),
  ]
}

/** Is the signer one whom the caller trusts, now and for this token? */
function trustChecks(
  { statement, signer }: { statement: Statement; signer: Hex | null },
  { signer: trusted, keys, tokenId, contract, maxAgeSeconds = 300, now = Date.now() / 1000 }: AttestationTrust,
): Check[] {
  const { timestamp } = statement
  const age = Math.floor(now - timestamp)
  const young = age <= maxAgeSeconds && age >= -clockTolerance
  const checks = [
    pin('token asked for', String(statement.tokenId), tokenId === undefined ? undefined : decimal(tokenId)),
    pin('contract trusted', statement.verifyingContract, contract),
    { field: 'age', ok: young, claimed: `${age} s`, found: `at most ${maxAgeSeconds} s` },
  ]
  if (trusted === undefined && keys === undefined)
    checks.push(fails('signer trusted', signer, 'no trusted signer was given'))
  if (trusted !== undefined) checks.push(pin('signer trusted', signer ?? 'none', trusted))
  if (keys !== undefined) checks.push(publishedCheck(keys, { signer, timestamp }))
  return checks
}

function publishedCheck(document: unknown, { signer, timestamp }: { signer: Hex | null; timestamp: number }): Check {
  const keys = readPublishedKeys(document)
  const field = 'key published'
  if (keys === null) return fails(field, signer, 'the published keys cannot be read')
  const own = keys.filter(({ address }) => address.toLowerCase() === signer)
  if (own.length === 0) return fails(field, signer, 'not a published key')
  if (own.some(({ status }) => status === 'revoked')) return fails(field, signer, 'a revoked key')
  const inWindow = own.some(
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

function decimal(tokenId: bigint | string): string {
  return String(parseTokenId(String(tokenId)) ?? 'no token id')
}

/** Reads a gateway's success body of unknown origin (spec §4.8): its form, and the facts that its best signature covers. */
import { type Check, fails } from '../check/report.ts'
import { isBytes } from '../lib/hex.ts'
import { hasKeys, isCount, isObject } from '../lib/json.ts'
import { checksumAddress, isAddress } from '../rules/address.ts'
import { isStateCode } from '../rules/lifecycle.ts'
import { parseTokenId } from '../rules/token-id.ts'
import { chainRefKeys, verdictChainId } from '../rules/verdict.ts'
import type { TypedAttestationMessage } from './v1.ts'
import { type AssetAttestation, noOwner } from './v2.ts'

/** The facts that both forms sign. */
export type Statement = TypedAttestationMessage & Readonly<{ tokenId: bigint; timestamp: number }>

const bodyKeys = [
  'version',
  'assetId',
  'chain',
  'state',
  'state_code',
  'authentic',
  'flagged',
  'chainRef',
  'attestation',
  'network',
  'audit_status',
  'production_ready',
] as const
const attestationKeys = ['message', 'encoding', 'digest', 'signature', 'signer', 'keyId', 'eip712'] as const
const typedKeys = ['domain', 'types', 'primaryType', 'message', 'signature'] as const

type Member = Readonly<Record<string, unknown>>
/** The objects of an answer, their members still unknown. `v2` is `null` in the old form, `eas` where it was not asked for. */
export type Parts = Readonly<{
  body: Member
  chainRef: Member
  attestation: Member
  typed: Member
  v2: Member | null
  eas: unknown
}>

/** A form that can be checked further. `facts` is what the second form signs; `null` in the old form. */
export type Reading = Readonly<{ statement: Statement; facts: AssetAttestation | null; parts: Parts }>

/** Checks the form. `reading` is `null` when the body cannot be what a gateway signs. */
export function readAttestation(body: unknown): { checks: Check[]; reading: Reading | null } {
  if (!isObject(body)) return unreadable('body', body)
  const { chainRef, attestation } = body
  if (!isObject(chainRef)) return unreadable('chainRef', chainRef)
  if (!isObject(attestation)) return unreadable('attestation', attestation)
  const { eip712: typed, v2 = null, eas = null } = attestation
  if (!isObject(typed)) return unreadable('attestation.eip712', typed)
  if (v2 !== null && !isObject(v2)) return unreadable('attestation.v2', v2)
  const checks = [
    keyCheck('keys', body, bodyKeys, ['payment']),
    keyCheck('chainRef', chainRef, chainRefKeys),
    keyCheck('attestation', attestation, attestationKeys, ['v2', 'eas']),
    keyCheck('attestation.eip712', typed, typedKeys),
    ...(v2 === null ? [] : [keyCheck('attestation.v2', v2, typedKeys)]),
    ...(v2 === null && eas !== null ? [fails('attestation.eas', eas, 'only beside attestation.v2')] : []),
  ]
  const parts = { body, chainRef, attestation, typed, v2, eas }
  const facts = v2 === null ? null : readFacts(v2)
  const statement = v2 === null ? readStatement(typed) : facts && statementOf(facts)
  if (statement !== null) return { checks, reading: { statement, facts, parts } }
  const field = v2 === null ? 'attestation.eip712.message' : 'attestation.v2.message'
  return { checks: [...checks, fails(field, 'an object', 'not what a gateway signs')], reading: null }
}

/** The statement of the old form, or `null` when its members are of other types. */
function readStatement({ domain, message }: Member): Statement | null {
  const read = readCommon(domain, message)
  const { timestamp } = isObject(message) ? message : {}
  return read !== null && isCount(timestamp) ? { ...read, timestamp } : null
}

/** The facts of the second form, or `null` when its members are of other types. */
function readFacts({ domain, message }: Member): AssetAttestation | null {
  const read = readCommon(domain, message)
  const { flags, ownerCommitment, issuedAt } = isObject(message) ? message : {}
  if (read === null || !isCount(flags) || flags > 255 || !isBytes(ownerCommitment, 32) || !isCount(issuedAt))
    return null
  return { ...read, flags, ownerCommitment: ownerCommitment === noOwner ? null : ownerCommitment, issuedAt }
}

/** Reads the members that both forms have. State NONE is never attested. */
function readCommon(domain: unknown, message: unknown) {
  if (!isObject(message) || !isObject(domain)) return null
  const { state, blockNumber, blockHash } = message
  const { verifyingContract: contract } = domain
  const tokenId = typeof message['tokenId'] === 'string' ? parseTokenId(message['tokenId']) : null
  if (tokenId === null || !isStateCode(state) || state === 0) return null
  if (!isCount(blockNumber) || !isBytes(blockHash, 32) || !isAddress(contract)) return null
  return {
    tokenId,
    state,
    chainId: verdictChainId,
    blockNumber,
    blockHash,
    verifyingContract: checksumAddress(contract),
  }
}

function statementOf({
  tokenId,
  state,
  chainId,
  issuedAt,
  blockNumber,
  blockHash,
  verifyingContract,
}: AssetAttestation) {
  return { tokenId, state, chainId, timestamp: Number(issuedAt), blockNumber, blockHash, verifyingContract }
}

function unreadable(field: string, value: unknown) {
  return { checks: [fails(field, value, 'not a JSON object')], reading: null }
}

function keyCheck(field: string, object: object, keys: readonly string[], optional: readonly string[] = []): Check {
  const ok = hasKeys(object, keys, optional)
  const found = ok ? 'the keys of an attestation' : 'missing or unknown keys'
  return { field, ok, claimed: `${Object.keys(object).length} keys`, found }
}

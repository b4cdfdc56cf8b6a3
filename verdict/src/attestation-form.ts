/** Reads a gateway's success body of unknown origin (spec §4.8): its form, and what its plain fields say was signed. */
import { checksumAddress, isAddress } from './address.ts'
import type { TypedAttestationMessage } from './attestation.ts'
import { isBytes } from './hex.ts'
import { hasKeys, isObject } from './json.ts'
import { isStateCode } from './lifecycle.ts'
import { type Check, fails } from './report.ts'
import { parseTokenId } from './token-id.ts'
import { verdictChainId } from './verdict.ts'

/** The plain fields of the answer. */
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
const refKeys = ['chain_id', 'contract', 'token_id', 'block_number', 'block_hash'] as const
const attestationKeys = ['message', 'encoding', 'digest', 'signature', 'signer', 'keyId', 'eip712'] as const
const typedKeys = ['domain', 'types', 'primaryType', 'message', 'signature'] as const

type Member = Readonly<Record<string, unknown>>
/** The objects of an answer, their members still unknown. */
export type Parts = Readonly<{ body: Member; chainRef: Member; attestation: Member; typed: Member }>

/** Checks the form. `statement` is what the plain fields say; `null` when they cannot be what anyone signs. */
export function readAttestation(body: unknown): { checks: Check[]; statement: Statement | null; parts: Parts | null } {
  if (!isObject(body)) return unreadable('body', body)
  const { chainRef, attestation } = body
  if (!isObject(chainRef)) return unreadable('chainRef', chainRef)
  if (!isObject(attestation)) return unreadable('attestation', attestation)
  const typed = attestation['eip712']
  if (!isObject(typed)) return unreadable('attestation.eip712', typed)
  const checks = [
    keyCheck('keys', body, bodyKeys, ['payment']),
    keyCheck('chainRef', chainRef, refKeys),
    keyCheck('attestation', attestation, attestationKeys),
    keyCheck('attestation.eip712', typed, typedKeys),
  ]
  const { message } = attestation
  const tokenId = typeof body['assetId'] === 'string' ? parseTokenId(body['assetId']) : null
  const { state_code: state } = body
  const timestamp = isObject(message) ? message['timestamp'] : undefined
  const { contract, block_number: blockNumber, block_hash: blockHash } = chainRef
  if (tokenId === null) checks.push(fails('assetId', body['assetId'], 'not a decimal token id'))
  if (!isStateCode(state) || state === 0) checks.push(fails('state_code', state, 'not a state that is attested'))
  if (!isCount(timestamp)) checks.push(fails('attestation.message', timestamp, 'no time in unix seconds'))
  if (!isAddress(contract)) checks.push(fails('chainRef.contract', contract, 'not an address'))
  if (!isCount(blockNumber)) checks.push(fails('chainRef.block_number', blockNumber, 'not a block number'))
  if (!isBytes(blockHash, 32)) checks.push(fails('chainRef.block_hash', blockHash, 'not 32 bytes in lower-case hex'))
  const clear =
    tokenId !== null &&
    isStateCode(state) &&
    state !== 0 &&
    isCount(timestamp) &&
    isAddress(contract) &&
    isCount(blockNumber) &&
    isBytes(blockHash, 32)
  if (!clear) return { checks, statement: null, parts: null }
  const verifyingContract = checksumAddress(contract)
  const statement = { tokenId, state, chainId: verdictChainId, timestamp, blockNumber, blockHash, verifyingContract }
  return { checks, statement, parts: { body, chainRef, attestation, typed } }
}

function unreadable(field: string, value: unknown) {
  return { checks: [fails(field, value, 'not a JSON object')], statement: null, parts: null }
}

function keyCheck(field: string, object: object, keys: readonly string[], optional: readonly string[] = []): Check {
  const ok = hasKeys(object, keys, optional)
  const found = ok ? 'the keys of an attestation' : 'missing or unknown keys'
  return { field, ok, claimed: `${Object.keys(object).length} keys`, found }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

/**
 * Reads a verdict of unknown origin, in the form that spec §2.1–§2.3 demands. It reads what must be known to look the
 * token up.
 */
import { type Hex, isBytes } from '../lib/hex.ts'
import { hasKeys, isCount, isObject, isSameJson } from '../lib/json.ts'
import { isAddress } from '../rules/address.ts'
import { parseTokenId } from '../rules/token-id.ts'
import { untrustedOf } from '../rules/untrusted.ts'
import { chainRefKeys, type Verdict } from '../rules/verdict.ts'
import { type Check, compare, fails } from './report.ts'

/** A verdict that says clearly which token, contract and block it is about. All else in it is still unknown. */
export type Claim = Readonly<{
  verdict: Readonly<Record<string, unknown>>
  chainRef: Readonly<Record<string, unknown>>
  tokenId: bigint
  contract: Hex
  blockHash: Hex
}>

/** The members that are compared by value, in the order of spec §2.1. */
const valueKeys = [
  'version',
  'token_id',
  'authentic',
  'state',
  'state_code',
  'flagged',
  'owner_commitment',
  'network',
  'audit_status',
  'production_ready',
] as const

/** Checks the form of a verdict. `claim` is `null` when it cannot be looked up at all; then a check says why. */
export function readClaim(verdict: unknown): { checks: Check[]; claim: Claim | null } {
  if (!isObject(verdict)) return { checks: [fails('verdict', verdict, 'not a JSON object')], claim: null }
  const { chainRef } = verdict
  const checks = [keyCheck('keys', verdict, [...valueKeys, 'chainRef'], ['untrusted']), ...untrustedChecks(verdict)]
  if (!isObject(chainRef)) return { checks: [...checks, fails('chainRef', chainRef, 'not a JSON object')], claim: null }
  checks.push(keyCheck('chainRef', chainRef, chainRefKeys))
  const tokenId = canonicalTokenId(verdict['token_id'])
  const { contract, block_hash: blockHash } = chainRef
  if (tokenId === null)
    checks.push(fails('token_id', verdict['token_id'], 'not a decimal token id without leading zeros'))
  if (!isAddress(contract)) checks.push(fails('chainRef.contract', contract, 'not an address'))
  if (!isBytes(blockHash, 32)) checks.push(fails('chainRef.block_hash', blockHash, 'not 32 bytes in lower-case hex'))
  const clear = tokenId !== null && isAddress(contract) && isBytes(blockHash, 32)
  return { checks, claim: clear ? { verdict, chainRef, tokenId, contract, blockHash } : null }
}

/** Returns the block number of a claim as a JSON-RPC quantity; `null` where it is none. */
export function claimedNumber({ chainRef }: Claim): Hex | null {
  const { block_number: number } = chainRef
  return isCount(number) ? `0x${number.toString(16)}` : null
}

/** Compares every derived member with the verdict made anew from the chain. */
export function compareWith({ verdict, chainRef }: Claim, expected: Verdict): Check[] {
  return [
    ...valueKeys.map((key) => compare(key, verdict[key], expected[key])),
    ...chainRefKeys.map((key) => compare(`chainRef.${key}`, chainRef[key], expected.chainRef[key])),
  ]
}

function keyCheck(field: string, object: object, keys: readonly string[], optional: readonly string[] = []): Check {
  const ok = hasKeys(object, keys, optional)
  return {
    field,
    ok,
    claimed: `${Object.keys(object).length} keys`,
    found: ok ? 'the keys of the specification' : 'missing or unknown keys',
  }
}

/** The texts cannot be derived from the record. Their form can be checked: the fixed warning, and texts that cleaning leaves as they are. */
function untrustedChecks(verdict: object): Check[] {
  if (!Object.hasOwn(verdict, 'untrusted')) return []
  const untrusted: unknown = Reflect.get(verdict, 'untrusted')
  const ok = isObject(untrusted) && isSameJson(untrusted, untrustedOf(untrusted))
  const found = ok ? 'the form is right; the texts are not derived from the chain' : 'not the warning and cleaned texts'
  return [{ field: 'untrusted', ok, claimed: 'supplier metadata', found }]
}

function canonicalTokenId(text: unknown): bigint | null {
  const id = typeof text === 'string' ? parseTokenId(text) : null
  return id !== null && String(id) === text ? id : null
}

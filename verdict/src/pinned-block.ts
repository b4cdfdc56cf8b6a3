/** Reads the chain id and the block that a verdict names from a JSON-RPC endpoint (spec §2.2). */
import { headerHash, type RpcHeader } from './block-header.ts'
import type { Rpc } from './chain-read.ts'
import type { Claim } from './claim.ts'
import { VerdictError, isRefusal } from './errors.ts'
import type { Hex } from './hex.ts'
import { isObject } from './json.ts'
import { type Check, compare, fails } from './report.ts'
import { verdictChainId } from './verdict.ts'

/** The block of a claim as the RPC gives it; `number` is its quantity, the form in which it is asked for again. */
export type PinnedBlock = Readonly<{ header: RpcHeader; number: Hex }>

/**
 * Looks the claim's block up by its hash. `block` is `null`, and a check says why, when the RPC is on another chain,
 * knows no such block, or answers with a header of another hash. A header with members of a later fork cannot be
 * hashed; then its own `hash` must do.
 */
export async function readPinnedBlock(rpc: Rpc, claim: Claim): Promise<{ checks: Check[]; block: PinnedBlock | null }> {
  const chainId = await rpc('eth_chainId', [])
  const checks = [compare('rpc.chain_id', verdictChainId, quantity(chainId, 'eth_chainId'))]
  const header = await rpc('eth_getBlockByHash', [claim.blockHash, false]).catch(nullIfUnknown)
  if (header === null)
    return { checks: [...checks, fails('block', claim.blockHash, 'the RPC knows no such block')], block: null }
  if (!isObject(header)) throw unusable('eth_getBlockByHash')
  const hash = headerHash(header) ?? header['hash']
  checks.push(compare('block', claim.blockHash, typeof hash === 'string' ? hash : 'a block without a hash'))
  const number = header['number']
  quantity(number, 'eth_getBlockByHash')
  return { checks, block: checks.every(({ ok }) => ok) ? { header, number: number as Hex } : null }
}

/** Some endpoints answer an unknown hash with an error in place of `null`. */
function nullIfUnknown(error: unknown): null {
  if (isRefusal(error) && isObject(error.cause) && /not found|unknown block/i.test(String(error.cause['message'])))
    return null
  throw error
}

/** Is the block the one that the RPC has at its number now, so part of the canonical chain? */
export async function checkCanonical(rpc: Rpc, claim: Claim, number: Hex): Promise<Check> {
  const block = await rpc('eth_getBlockByNumber', [number, false])
  if (block === null) return fails('block.canonical', claim.blockHash, 'the RPC has no block at this number')
  if (!isObject(block) || typeof block['hash'] !== 'string') throw unusable('eth_getBlockByNumber')
  return compare('block.canonical', claim.blockHash, block['hash'])
}

/** A JSON-RPC quantity as a number below 2^53. */
function quantity(value: unknown, method: string): number {
  const number = typeof value === 'string' && /^0x[0-9a-f]{1,14}$/i.test(value) ? Number(value) : Number.NaN
  if (!Number.isSafeInteger(number)) throw unusable(method)
  return number
}

function unusable(method: string): VerdictError {
  return new VerdictError('RPC_UNAVAILABLE', `The RPC answered ${method} with something unusable.`)
}

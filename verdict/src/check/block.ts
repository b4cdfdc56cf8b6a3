/** Reads the chain id and the block that a verdict names from a JSON-RPC endpoint (spec §2.2). */
import { VerdictError, isRefusal, unavailable } from '../lib/errors.ts'
import type { Hex } from '../lib/hex.ts'
import { isObject } from '../lib/json.ts'
import { headerHash, type RpcHeader } from '../proof/header.ts'
import { createRpc, type Rpc } from '../rpc.ts'
import { verdictChainId } from '../rules/verdict.ts'
import { type Claim, claimedNumber } from './claim.ts'
import { askEndpoints, defaultMaxAgeSeconds, type Endpoints } from './endpoints.ts'
import { type Check, compare, fails, type Report, reportOf, undecided } from './report.ts'

/**
 * Holds the block of a claim as the RPC returns it. `number` is its quantity, the form in which it is asked for again.
 */
export type PinnedBlock = Readonly<{ header: RpcHeader; number: Hex }>

/**
 * Reads the claim's block at each endpoint and makes the checks that `read` returns. Whether the block is still canonical is asked after
 * those reads, so that no reorganisation came between. `checks` are those made before.
 */
export function checkAtBlock(
  claim: Claim,
  options: Endpoints,
  checks: readonly Check[],
  read: (rpc: Rpc, block: PinnedBlock) => Promise<readonly Check[]>,
): Promise<Report> {
  const { maxAgeSeconds = defaultMaxAgeSeconds } = options
  return askEndpoints(options, async (url) => {
    const rpc = createRpc({ ...options, url })
    try {
      const { checks: blockChecks, block } = await readPinnedBlock(rpc, claim)
      if (block === null) return reportOf([...checks, ...blockChecks])
      const found = await read(rpc, block)
      const standing = await checkStanding(rpc, claim, block.number, maxAgeSeconds)
      return reportOf([...checks, ...blockChecks, ...found, ...standing])
    } catch (cause) {
      throw unavailable(cause)
    }
  })
}

/**
 * Looks the claim's block up by its hash. `block` is `null`, and a check says why, when the RPC is on another chain,
 * has no such block, or answers with a header of another hash. A header with members of a later fork cannot be
 * hashed; then its own `hash` must do.
 */
async function readPinnedBlock(rpc: Rpc, claim: Claim): Promise<{ checks: Check[]; block: PinnedBlock | null }> {
  const checks = [await checkChainId(rpc)]
  const header = await rpc('eth_getBlockByHash', [claim.blockHash, false]).catch(nullIfUnknown)
  if (header === null) return { checks: [...checks, await unknownCheck(rpc, claim)], block: null }
  if (!isObject(header)) throw unusable('eth_getBlockByHash')
  const hash = headerHash(header) ?? header['hash']
  checks.push(compare('block', claim.blockHash, typeof hash === 'string' ? hash : 'a block without a hash'))
  const number = header['number']
  quantity(number, 'eth_getBlockByHash')
  return { checks, block: checks.every(({ ok }) => ok) ? { header, number: number as Hex } : null }
}

/** An unknown block differs where the RPC has another one of its number. Else the RPC may only be behind, which is no difference. */
async function unknownCheck(rpc: Rpc, claim: Claim): Promise<Check> {
  const number = claimedNumber(claim)
  if (number === null) return fails('block', claim.blockHash, 'the RPC knows no such block')
  const other = await blockAt(rpc, number)
  return other === null || other['hash'] === claim.blockHash
    ? undecided('block', claim.blockHash, 'the RPC knows no such block: it may be behind, or the block never was')
    : compare('block', claim.blockHash, String(other['hash']))
}

/** Is the RPC on the chain of which verdicts speak? */
export async function checkChainId(rpc: Rpc): Promise<Check> {
  return compare('rpc.chain_id', verdictChainId, quantity(await rpc('eth_chainId', []), 'eth_chainId'))
}

/** Some endpoints answer an unknown hash with an error in place of `null`. */
function nullIfUnknown(error: unknown): null {
  if (isRefusal(error) && isObject(error.cause) && /not found|unknown block/i.test(String(error.cause['message'])))
    return null
  throw error
}

/**
 * Checks that the block of a claim is part of the chain that the RPC has now. It must be at most `maxAgeSeconds` older
 * than the latest block. An older one is undecided: the record may have changed since.
 */
export async function checkStanding(rpc: Rpc, claim: Claim, number: Hex, maxAgeSeconds: number): Promise<Check[]> {
  const block = await blockAt(rpc, number)
  const canonical = canonicalCheck(claim, block)
  if (block === null || !canonical.ok) return [canonical]
  const latest = await blockAt(rpc, 'latest')
  if (latest === null) throw unusable('eth_getBlockByNumber')
  const time = timeOf(block)
  const age = Math.max(0, timeOf(latest) - time)
  const claimed = new Date(time * 1000).toISOString().replace('.000Z', 'Z')
  const found = `${age < 7200 ? `${age} s` : `${Math.floor(age / 3600)} h`} before the latest block`
  const row =
    age <= maxAgeSeconds
      ? { field: 'block.age', ok: true, claimed, found }
      : undecided(
          'block.age',
          claimed,
          `${found}: the token may have changed since. Ask the service again, or allow this age`,
        )
  return [canonical, row]
}

/** Is the block the one that the RPC has at its number now, so part of the canonical chain? */
export async function checkCanonical(rpc: Rpc, claim: Claim, number: Hex): Promise<Check> {
  return canonicalCheck(claim, await blockAt(rpc, number))
}

function canonicalCheck(claim: Claim, block: RpcHeader | null): Check {
  if (block === null)
    return undecided('block.canonical', claim.blockHash, 'the RPC has no block at this number: it may be behind')
  return compare('block.canonical', claim.blockHash, String(block['hash']))
}

async function blockAt(rpc: Rpc, at: Hex | 'latest'): Promise<RpcHeader | null> {
  const block = await rpc('eth_getBlockByNumber', [at, false])
  if (block === null) return null
  if (!isObject(block) || typeof block['hash'] !== 'string') throw unusable('eth_getBlockByNumber')
  return block
}

/** The time of a block in unix seconds, before the year 5000. */
function timeOf(block: RpcHeader): number {
  const seconds = quantity(block['timestamp'], 'eth_getBlockByNumber')
  if (seconds > 95_617_584_000) throw unusable('eth_getBlockByNumber')
  return seconds
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

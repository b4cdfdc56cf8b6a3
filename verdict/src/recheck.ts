/** Re-derives a verdict by reading the contract at the verdict's own block (spec §1, «Trust model»). */
import { recordOfGetAsset } from './asset-record.ts'
import { createRpc, getAssetCall, type Rpc } from './chain-read.ts'
import { type Claim, readClaim } from './claim.ts'
import { compareRecord } from './compare-record.ts'
import { VerdictError, isRefusal, unavailable } from './errors.ts'
import type { FetchOptions } from './fetch-json.ts'
import type { Hex } from './hex.ts'
import { isObject } from './json.ts'
import { checkCanonical, type PinnedBlock, readPinnedBlock } from './pinned-block.ts'
import { type Check, type Report, reportOf } from './report.ts'

/** How to ask the chain. */
export type RecheckOptions = FetchOptions &
  Readonly<{
    /** A JSON-RPC endpoint that you trust: a lying one goes undetected. For old blocks it must keep old state. */
    rpcUrl: string
    /** The core contract you trust. If left out, the report says that the contract was not checked. */
    contract?: Hex | undefined
  }>

/**
 * Rechecks a verdict: reads `getAsset` pinned to the verdict's block hash, makes the verdict anew and compares every
 * member. Any input gives a report; a verdict altered in one place gives one that is not ok. The texts of `untrusted`
 * do not come from the record, so only their form is checked. Throws `VerdictError` with `RPC_UNAVAILABLE` when the
 * endpoint cannot be asked.
 */
export async function recheck(verdict: unknown, options: RecheckOptions): Promise<Report> {
  const { checks, claim } = readClaim(verdict)
  if (claim === null) return reportOf(checks)
  const rpc = createRpc({ ...options, url: options.rpcUrl })
  try {
    const found = await readPinnedBlock(rpc, claim, options.contract)
    checks.push(...found.checks)
    if (found.block !== null) checks.push(...(await readRecord(rpc, claim, found.block)))
    return reportOf(checks)
  } catch (cause) {
    throw unavailable(cause)
  }
}

/**
 * Asks by block hash. An endpoint that refuses hashes is asked by number, between two looks at the hash of that number.
 */
async function readRecord(rpc: Rpc, claim: Claim, block: PinnedBlock): Promise<Check[]> {
  const call = { to: claim.contract, data: getAssetCall(claim.tokenId) }
  const read = async (pinnedTo: unknown): Promise<Check[] | 'refused'> => {
    try {
      const data = await rpc('eth_call', [call, pinnedTo])
      return compareRecord(claim, typeof data === 'string' ? recordOfGetAsset(data as Hex) : null, block.header)
    } catch (error) {
      if (!isRefusal(error)) throw error
      return isRevert(error.cause) ? compareRecord(claim, null, block.header) : 'refused'
    }
  }
  const byHash = await read({ blockHash: claim.blockHash, requireCanonical: true })
  if (byHash !== 'refused') return byHash
  const before = await checkCanonical(rpc, claim, block)
  const byNumber = before.ok ? await read(block.number) : []
  if (byNumber === 'refused') throw new VerdictError('RPC_REFUSED', 'The RPC refused eth_call at this block.')
  return [before, ...byNumber, await checkCanonical(rpc, claim, block)]
}

/** The contract ran and failed: the registry's `getAsset` never does, so this is another contract. */
function isRevert(cause: unknown): boolean {
  return isObject(cause) && (cause['code'] === 3 || /revert|invalid opcode|out of gas/i.test(String(cause['message'])))
}

/** Re-derives a verdict by reading the contract at the verdict's own block (spec §1, «Trust model»). */
import { VerdictError, isRefusal } from '../lib/errors.ts'
import type { Hex } from '../lib/hex.ts'
import { isObject } from '../lib/json.ts'
import { blockParameter, getAssetCall, metadataHashCall, type Rpc } from '../rpc.ts'
import { recordOfGetAsset } from '../rules/record.ts'
import { checkAtBlock, checkCanonical, type PinnedBlock } from './block.ts'
import { type Claim, readClaim } from './claim.ts'
import { pinChecks, type Pins, resolvePins } from './deployments.ts'
import type { Endpoints } from './endpoints.ts'
import { metadataChecks, readDocument, type ReadMetadata } from './metadata.ts'
import { compareRecord } from './record.ts'
import { type Check, type Report, reportOf } from './report.ts'

/** How to ask the chain, and what to hold the answer against. */
export type RecheckOptions = Endpoints &
  Pins &
  Readonly<{
    /**
     * The metadata document as it was hashed (`GET /api/metadata/{hash}`), or a function that reads it. With it the texts of `untrusted` are
     * checked against the hash on chain: they are what the minter committed to. The function gets that hash, for a verdict with texts only.
     * It has a deadline of its own. The texts are undecided where it rejects.
     */
    metadata?: string | ReadMetadata | undefined
  }>

/**
 * Rechecks a verdict: reads `getAsset` pinned to the verdict's block hash, makes the verdict anew and compares every
 * member. Any input has a report; that of a verdict altered in one place is not ok. Without `metadata` the texts of `untrusted`
 * are only checked to be in their cleaned form. A contract that is neither known nor pinned leaves the report `undecided`. Throws
 * `VerdictError` with `RPC_UNAVAILABLE` when too few endpoints can be asked.
 */
export async function recheck(verdict: unknown, options: RecheckOptions): Promise<Report> {
  const { checks: formChecks, claim } = readClaim(verdict)
  if (claim === null) return reportOf(formChecks)
  const checks = [...formChecks, ...pinChecks(claim, options, resolvePins(claim.contract, options))]
  return checkAtBlock(claim, options, checks, (rpc, block) => checkRecord(rpc, claim, block, options.metadata))
}

async function checkRecord(
  rpc: Rpc,
  claim: Claim,
  block: PinnedBlock,
  metadata: RecheckOptions['metadata'],
): Promise<Check[]> {
  const at = await blockParameter(rpc, { number: BigInt(block.number), hash: claim.blockHash })
  const isRead = typeof at === 'object' || (await isCanonical(rpc, claim, block.number))
  const call = (data: Hex) => (isRead ? callAt(rpc, { to: claim.contract, data }, at) : null)
  const asset = await call(getAssetCall(claim.tokenId))
  const record = asset === null ? null : recordOfGetAsset(asset)
  const checks = compareRecord(claim, record, block.header)
  const hasTexts = claim.verdict['untrusted'] !== undefined
  if (metadata === undefined || (typeof metadata !== 'string' && !hasTexts)) return checks
  const hash = await call(metadataHashCall(claim.tokenId))
  const text = typeof metadata === 'string' ? metadata : await readDocument(hash, metadata)
  return [...checks, ...metadataChecks(claim, text, hash)]
}

/** Throws where the endpoint has no block of this number, so that it may be behind. */
async function isCanonical(rpc: Rpc, claim: Claim, number: Hex): Promise<boolean> {
  const { ok, undecided } = await checkCanonical(rpc, claim, number)
  if (undecided) throw refused()
  return ok
}

/** Calls a contract; `null` when it reverts or answers no hex. */
async function callAt(rpc: Rpc, call: { to: Hex; data: Hex }, at: object | Hex): Promise<Hex | null> {
  try {
    const result = await rpc('eth_call', [call, at])
    return typeof result === 'string' ? (result as Hex) : null
  } catch (error) {
    if (!isRefusal(error)) throw error
    if (isRevert(error.cause)) return null
    throw refused()
  }
}

function refused(): VerdictError {
  return new VerdictError('RPC_REFUSED', 'The RPC refused eth_call at this block.')
}

/** The contract ran and failed: the registry's `getAsset` never does, so this is another contract. */
function isRevert(cause: unknown): boolean {
  return isObject(cause) && (cause['code'] === 3 || /revert|invalid opcode|out of gas/i.test(String(cause['message'])))
}

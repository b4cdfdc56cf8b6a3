/** Proves a verdict from the hash of its block: the RPC can withhold an answer, but not forge one. */
import { createRpc } from './chain-read.ts'
import { readClaim } from './claim.ts'
import { isRefusal, unavailable } from './errors.ts'
import { checkCanonical, readPinnedBlock } from './pinned-block.ts'
import { proofChecks, type ProofPins } from './proof-checks.ts'
import type { RecheckOptions } from './recheck.ts'
import { type Report, reportOf } from './report.ts'
import { type EthProof, recordSlot } from './storage-proof.ts'

/** How to ask the chain, and what to hold the answer against. */
export type ProveOptions = RecheckOptions & ProofPins

/**
 * Proves a verdict: the header hashes to the verdict's block hash, the contract's account lies under the header's state
 * root, the record under the account's storage root (EIP-1186), and the verdict made from that record is the one given.
 * What stays trusted is that the block is canonical: for that the report has only the RPC's word. Any input gives a
 * report. The texts of `untrusted` are not proven. Throws `VerdictError` with `RPC_UNAVAILABLE` when the endpoint
 * cannot be asked; many prove recent blocks only.
 */
export async function prove(verdict: unknown, options: ProveOptions): Promise<Report> {
  const { checks, claim } = readClaim(verdict)
  if (claim === null) return reportOf(checks)
  const rpc = createRpc({ ...options, url: options.rpcUrl })
  try {
    const { checks: blockChecks, block } = await readPinnedBlock(rpc, claim, options.contract)
    checks.push(...blockChecks)
    if (block === null) return reportOf(checks)
    const slot = recordSlot(claim.tokenId, options.recordsSlot)
    const ask = (pinnedTo: unknown) => rpc('eth_getProof', [claim.contract, [slot], pinnedTo])
    // By number is as good where hashes are refused: the proof must fit the header in any case.
    const proof = await ask({ blockHash: claim.blockHash }).catch((error: unknown) => {
      if (isRefusal(error)) return ask(block.number)
      throw error
    })
    checks.push(...proofChecks(claim, block.header, proof as EthProof, options).checks)
    checks.push(await checkCanonical(rpc, claim, block))
    return reportOf(checks)
  } catch (cause) {
    throw unavailable(cause)
  }
}

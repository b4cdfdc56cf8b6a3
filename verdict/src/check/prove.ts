/** Proves a verdict from the hash of its block. The RPC cannot forge the record of a block, only a whole block. */
import { headerHash } from '../proof/header.ts'
import type { EthProof } from '../proof/storage.ts'
import { checkAtBlock } from './block.ts'
import { readClaim } from './claim.ts'
import { pinChecks, resolvePins } from './deployments.ts'
import { proofChecks, proofSlots } from './proof.ts'
import type { RecheckOptions } from './recheck.ts'
import { type Report, reportOf, undecided } from './report.ts'

/** How to ask the chain, and what to hold the answer against. */
export type ProveOptions = Omit<RecheckOptions, 'metadata'> &
  Readonly<{
    /** The metadata document as it was hashed. With it the texts of `untrusted` are checked against the hash on chain. */
    metadata?: string | undefined
    /** Slot of the mapping that holds the metadata hashes, used with `metadata`: 7 in the registry. */
    metadataSlot?: bigint | undefined
  }>

/**
 * Proves a verdict from a header that hashes to the verdict's block hash (EIP-1186). The contract's account lies under
 * the header's state root, the record under the account's storage root. The verdict made from that record is the one
 * given; with `metadata`, its hash too.
 * The RPC remains trusted for one thing, that the block is canonical: name several endpoints for it. Any input gives a
 * report. A contract that is neither known nor pinned leaves it `undecided`. Throws `VerdictError` with
 * `RPC_UNAVAILABLE` when too few endpoints can be asked; many prove recent blocks only.
 */
export async function prove(verdict: unknown, options: ProveOptions): Promise<Report> {
  const { checks: formChecks, claim } = readClaim(verdict)
  if (claim === null) return reportOf(formChecks)
  const pins = resolvePins(claim.contract, options)
  const checks = [...formChecks, ...pinChecks(claim, options, pins)]
  const { recordsSlot } = pins
  if (recordsSlot === null)
    return reportOf([
      ...checks,
      undecided('proof.storage', '', 'the slot of the records is not published: give recordsSlot'),
    ])
  const facts = { ...options, codeHash: pins.codeHash, recordsSlot }
  return checkAtBlock(claim, options, checks, async (rpc, { header, number }) => {
    if (headerHash(header) === null)
      return [undecided('proof.header', claim.blockHash, 'the header has members that this library cannot hash')]
    // By number, which every endpoint takes: the proof must fit the header in any case.
    const proof = await rpc('eth_getProof', [claim.contract, proofSlots(claim, facts), number])
    return proofChecks(claim, header, proof as EthProof, facts).checks
  })
}

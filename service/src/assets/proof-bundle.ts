/**
 * GET {base_url}/api/asset/{tokenId}/proof: a verdict with its storage proof (EIP-1186), both at one block. Most nodes prove only near
 * their head. `checkProofBundle` of `@touchstone/verdict` checks it offline.
 */
import {
  headerHash,
  recordOfWord,
  recordSlot,
  verdictOf,
  type Hex,
  type ProofBundle,
  type RpcHeader,
} from '@touchstone/verdict'
import { createProvenRead } from '../chain/assets/calls/storage-proof.ts'
import { nonCanonical } from '../chain/rpc/answer.ts'
import { type ChainSource } from '../chain/rpc/source.ts'
import { chainId, headPausesMs } from '../domain/chain.ts'
import { retry } from '../lib/async/retry.ts'
import { chainUnavailable } from '../lib/errors.ts'

/** Returns null when the token does not exist. Throws CHAIN_UNAVAILABLE when there is no proof or it does not hold. */
export type ProofBundles = (tokenId: bigint) => Promise<ProofBundle | null>

export function createProofBundles({
  source,
  contract,
  codeHash,
  recordsSlot,
  pausesMs = headPausesMs,
}: {
  readonly source: Pick<ChainSource, 'head' | 'proof'>
  readonly contract: Hex
  readonly codeHash: Hex
  readonly recordsSlot: bigint
  /** Pauses before reads at a new head, while the block is not canonical. */
  readonly pausesMs?: readonly number[]
}): ProofBundles {
  const proven = createProvenRead({ source, contract, codeHash })

  return (tokenId) => {
    const nonCanonicalBlock = chainUnavailable('the block is no longer canonical')
    return retry(() => bundleOf(tokenId, nonCanonicalBlock), {
      pausesMs,
      isRetryable: (error) => error === nonCanonicalBlock,
    })
  }

  /** Throws `nonCanonicalBlock` where the block is not canonical. */
  async function bundleOf(tokenId: bigint, nonCanonicalBlock: Error): ReturnType<ProofBundles> {
    const block = await source.head()
    const { header } = block
    // No provider's proof would hold under it. Trust `rpc` accepts such a header, as after a fork.
    if (headerHash(header) !== block.hash)
      throw chainUnavailable('the header has missing, malformed or unknown members, so its hash cannot be checked')
    const found = await proven([recordSlot(tokenId, recordsSlot)], block)
    if (found === nonCanonical) throw nonCanonicalBlock
    const record = recordOfWord(found.values[0] ?? 0n)
    if (record === null) throw chainUnavailable('the record cannot be decoded')
    const verdict = verdictOf({ record, tokenId, block, contract, chainId })
    if (verdict === null) return null
    const { accountProof, storageProof } = found.proof
    return {
      version: '1',
      verdict,
      proof: { header: headerOnly(header), accountProof, storageProof, recordsSlot: Number(recordsSlot), codeHash },
    }
  }
}

/** Leaves out the members that do not go into the block hash and may be long. */
function headerOnly(header: RpcHeader): RpcHeader {
  const { transactions: _transactions, withdrawals: _withdrawals, uncles: _uncles, ...rest } = header
  return rest
}

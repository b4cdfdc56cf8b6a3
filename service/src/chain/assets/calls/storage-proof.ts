/**
 * Reads records by proof (spec §2.2; trust `proof`; EIP-1186). The provider sends the trie nodes, and the answer is what they prove under
 * the block's state root. A provider can withhold an answer, but not forge it.
 */
import { type EthProof, type Hex, mappingSlot, recordOfWord, verifyStorageProof } from '@touchstone/verdict'
import { chainUnavailable } from '../../../lib/errors.ts'
import { memoizeLast } from '../../../lib/memoize.ts'
import type { Block } from '../../rpc/block.ts'
import { nonCanonical, type NonCanonical } from '../../rpc/answer.ts'
import { type ChainSource } from '../../rpc/source.ts'
import { type DecodedState, toDecodedState } from './abi.ts'
import { type CallEncoding, readTagged } from './encodings.ts'

/** The positions of the three mappings in the storage layout of contracts/src/AssetRegistry.sol. */
export const registrySlots = { records: 3n, tags: 5n, metadata: 7n }

type ProofOptions = Readonly<{
  source: Pick<ChainSource, 'proof'>
  contract: Hex
  /** keccak256 of the deployed code: with other code the slots would mean something else. */
  codeHash: Hex
}>

export type ProvenRead = (slots: readonly Hex[], block: Block, deadline?: number) => Promise<Proven | NonCanonical>
type Proven = Readonly<{ values: readonly bigint[]; storageHash: Hex; proof: EthProof }>

/** Returns a read of slots of the contract that checks their proof. It throws CHAIN_UNAVAILABLE. */
export function createProvenRead({ source, contract, codeHash }: ProofOptions): ProvenRead {
  return async (slots, block, deadline = Infinity) => {
    const verifyOnce = memoizeLast((proof: EthProof) =>
      verifyStorageProof({ header: block.header, blockHash: block.hash, contract, codeHash, proof, slots: [...slots] }),
    )
    const check = (proof: EthProof) => {
      const result = verifyOnce(proof)
      return result.ok ? null : result.reason
    }
    const proof = await source.proof(slots, block, { deadline, check })
    if (proof === nonCanonical) return proof
    const result = verifyOnce(proof)
    if (!result.ok) throw chainUnavailable(result.reason)
    // The check has compared this member with the proven account.
    if (proof.storageHash === undefined) throw chainUnavailable('a proof without storageHash')
    return { values: result.values, storageHash: proof.storageHash, proof }
  }
}

/** Reads records, metadata hashes and tags, each from its slot. */
export function proofEncoding(proven: ProvenRead): CallEncoding {
  const assetSlots = (id: bigint) => [mappingSlot(id, registrySlots.records), mappingSlot(id, registrySlots.metadata)]

  async function read(ids: readonly bigint[], block: Block, deadline: number) {
    const proof = await proven(ids.flatMap(assetSlots), block, deadline)
    if (proof === nonCanonical) return proof
    return ids.map((_, index): DecodedState => {
      const [word = 0n, metadata = 0n] = proof.values.slice(2 * index, 2 * index + 2)
      const decoded = toDecodedState(recordOfWord(word), metadata)
      if (decoded === null) throw chainUnavailable('a proven record is none')
      return decoded
    })
  }

  return {
    name: 'proof',
    maxBatch: 100,
    read,
    async byTags(tagHashes, block, deadline) {
      const tagSlots = tagHashes.map((tagHash) => mappingSlot(BigInt(tagHash), registrySlots.tags))
      const proof = await proven(tagSlots, block, deadline)
      return proof === nonCanonical ? proof : readTagged(read, { tagHashes, tokenIds: proof.values }, block, deadline)
    },
  }
}

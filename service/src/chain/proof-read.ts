/**
 * Records read by proof instead of by word (spec §2.2; chain.md trust `proof`; EIP-1186): the provider sends the trie
 * nodes, and what they prove under the block's state root is the answer. A provider can withhold it, but not forge it.
 */
import { mappingSlot, recordOfWord, verifyStorageProof } from '@touchstone/verdict'
import type { EthProof, Hex } from '@touchstone/verdict'
import { ServiceError } from '../errors.ts'
import { foundOf } from './read-calls.ts'
import type { Found } from './read-calls.ts'
import type { ReadForm } from './read-calls-form.ts'
import { blockGone } from './source.ts'
import type { Block, BlockGone, ChainSource } from './source.ts'

/** The places of the three mappings in the contract's storage layout. */
export type Slots = Readonly<{ records: bigint; tags: bigint; metadata: bigint }>

/** Those of contracts/src/AssetRegistry.sol. */
export const registrySlots: Slots = { records: 3n, tags: 5n, metadata: 7n }

export type ProofOptions = Readonly<{
  source: ChainSource
  contract: Hex
  /** keccak256 of the deployed code: with other code the slots would mean something else. */
  codeHash: Hex
}>

export type ProvenRead = (slots: readonly Hex[], block: Block, deadline: number) => Promise<Proven | BlockGone>
type Proven = Readonly<{ values: readonly bigint[]; storageHash: Hex }>

/** Reads slots of the contract and believes nothing but the proof. Throws CHAIN_UNAVAILABLE. */
export function createProvenRead({ source, contract, codeHash }: ProofOptions): ProvenRead {
  return async (slots, block, deadline) => {
    const verify = (proof: EthProof) =>
      verifyStorageProof({ header: block.header, blockHash: block.hash, contract, codeHash, proof, slots: [...slots] })
    let last: { proof: EthProof; result: ReturnType<typeof verify> } | undefined
    const verifyOnce = (proof: EthProof) =>
      (last?.proof === proof ? last : (last = { proof, result: verify(proof) })).result
    const check = (proof: EthProof) => {
      const result = verifyOnce(proof)
      return result.ok ? null : result.reason
    }
    const proof = await source.proof(slots, block, { deadline, check })
    if (proof === blockGone) return proof
    const result = verifyOnce(proof)
    if (!result.ok) return refuse(result.reason)
    // Proven like the values: where this member is there, the check has compared it with the account.
    return { values: result.values, storageHash: proof.storageHash ?? refuse('a proof without storageHash') }
  }
}

/** Records, metadata hashes and tags, each from its slot. */
export function proofForm(proven: ProvenRead, slots: Slots): ReadForm {
  const assetSlots = (id: bigint) => [mappingSlot(id, slots.records), mappingSlot(id, slots.metadata)]

  async function read(ids: readonly bigint[], block: Block, deadline: number): Promise<readonly Found[] | BlockGone> {
    const proof = await proven(ids.flatMap(assetSlots), block, deadline)
    if (proof === blockGone) return proof
    return ids.map((_, index) => {
      const record = recordOfWord(proof.values[2 * index] ?? 0n)
      return foundOf(record, proof.values[2 * index + 1] ?? 0n) ?? refuse('a proven record is none')
    })
  }

  return {
    name: 'proof',
    maxBatch: 100,
    read,
    async byTag(tagHash, block, deadline) {
      const proof = await proven([mappingSlot(BigInt(tagHash), slots.tags)], block, deadline)
      if (proof === blockGone) return proof
      const tokenId = proof.values[0] ?? 0n
      if (tokenId === 0n) return { tokenId: null }
      const answer = await read([tokenId], block, deadline)
      return answer === blockGone ? answer : { tokenId, found: answer[0] ?? refuse('no record for the token of a tag') }
    },
  }
}

function refuse(reason: string): never {
  throw new ServiceError('CHAIN_UNAVAILABLE', 'The chain could not be read.', { cause: new Error(reason) })
}

/** The one chain of the service, Base Sepolia (spec §2.1), and how its blocks are named. */
import { type ChainRef, checksumAddress, type Hex, verdictChainId } from '@touchstone/verdict'

export const chainId = verdictChainId
/** The network's name in answers (`network`, `chain`). */
export const chainName = 'base-sepolia'
export const caipNetwork = `eip155:${chainId}` as const
/** The network's name for people. */
export const chainTitle = 'Base Sepolia'

/** Multicall3 has the same address on every chain (github.com/mds1/multicall3). */
export const multicallAddress: Hex = '0xca11bde05977b3631167028862be2a173976ca11'

/** The value that stands in the registry for no hash. */
export const zeroHash: Hex = `0x${'00'.repeat(32)}`

export type BlockId = Readonly<{ number: bigint; hash: Hex }>
/** A block with its time in unix seconds. */
export type TimedBlock = BlockId & Readonly<{ timestamp: bigint }>

/** Returns the reference of an answer to the block that it was read at. An agent and its registry stand like a token and its contract. */
export function chainRefOf(contract: Hex, tokenId: bigint, block: BlockId): ChainRef {
  return {
    chain_id: chainId,
    contract: checksumAddress(contract),
    token_id: tokenId.toString(),
    block_number: Number(block.number),
    block_hash: block.hash,
  }
}

/**
 * Pauses between reads of a head that is not canonical where it is read, three seconds in all. The first read again is at a new head. By
 * the later ones, each server behind one URL has it.
 */
export const headPausesMs: readonly number[] = [0, 50, 100, ...Array<number>(14).fill(200)]

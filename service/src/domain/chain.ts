/** The one chain of the service, Base Sepolia (spec §2.1), and how its blocks are named. */
import { type Hex, verdictChainId } from '@touchstone/verdict'

export const chainId = verdictChainId
/** The network's name in answers (`network`, `chain`). */
export const chainName = 'base-sepolia'
/** The network as a CAIP-2 chain id. */
export const caipNetwork = `eip155:${chainId}` as const
/** The network's name for people. */
export const chainTitle = 'Base Sepolia'

/** Identifies a block of the chain. */
export type BlockId = Readonly<{ number: bigint; hash: Hex }>

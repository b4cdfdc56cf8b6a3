/** What the indexer asks of the chain; `RpcChainSource` fits it. */
import { ServiceError } from '../errors.ts'
import type { RpcChainSource } from './source.ts'

export type IndexSource = Pick<RpcChainSource, 'head' | 'blocksAt' | 'finalized' | 'logs' | 'logsBetween'>

/** The fault of a chain that tells no connected story; asked again, it may. */
export function untold(reason: string): ServiceError {
  return new ServiceError('CHAIN_UNAVAILABLE', 'The chain could not be read.', { cause: new Error(reason) })
}

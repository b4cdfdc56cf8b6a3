/**
 * The mutations of schema.graphql and `transferTypedData` (spec §4.9). Every mutation needs the scope `write`; a refusal is a
 * payload with `success` false and `errors`, only a fault is a GraphQL error (spec §7).
 */
import { createBindTag, type BindDeps } from './bind-tag.ts'
import { createClaimProduct, type ClaimDeps } from './claim-product.ts'
import { demandScope, type GraphqlContext } from './context.ts'
import { createLifecycleMutations, type LifecycleDeps } from './lifecycle-mutations.ts'
import { createCarryOut, type WriteDeps } from './mutation-writes.ts'
import { createRegisterProduct, type RegisterDeps } from './register-product.ts'
import type { Resolver, ResolverMap } from './resolvers.ts'
import { transferTypedData } from './transfer-signing.ts'
import { createTransfersBySignature, type TransferDeps } from './transfers-by-signature.ts'

export type MutationDeps = WriteDeps & RegisterDeps & TransferDeps & LifecycleDeps & BindDeps & ClaimDeps

export function mutationResolvers(deps: MutationDeps): ResolverMap {
  const write = createCarryOut(deps)
  const transfers = createTransfersBySignature(deps, write)
  const lifecycle = createLifecycleMutations(deps, write)
  const signing = transferTypedData(deps.transfers)
  return {
    Query: { transferTypedData: (_source, args: Parameters<typeof signing>[0]) => signing(args) },
    Mutation: {
      registerProduct: mutation(createRegisterProduct(deps, write)),
      initiateTransfer: mutation(transfers.initiate),
      acceptTransfer: mutation(transfers.accept),
      cancelTransfer: mutation(transfers.cancel),
      bindTag: mutation(createBindTag(deps, write)),
      activateProduct: mutation(lifecycle.activate),
      claimProduct: mutation(createClaimProduct(deps, write)),
      flagProduct: mutation(lifecycle.flag),
      resolveProduct: mutation(lifecycle.resolve),
      recycleProduct: mutation(lifecycle.recycle),
    },
  }
}

function mutation<Args>(run: (args: Args, context: GraphqlContext) => Promise<unknown>): Resolver {
  return (_source, args: Args, context) => {
    demandScope(context, 'write')
    return run(args, context)
  }
}

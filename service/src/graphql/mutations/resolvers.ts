/** The mutations of schema.graphql, `transferTypedData` (spec §4.9), and the requests for approval. */
import type { Database } from '../../db/database.ts'
import type { Approvals } from '../../access/approvals/approvals.ts'
import { approvalResolvers } from './approvals.ts'
import type { ResolverMap } from '../schema.ts'
import {
  createBindTag,
  createClaimProduct,
  createLifecycleMutations,
  type BindDeps,
  type ClaimDeps,
} from './lifecycle.ts'
import { createWrites, type WriteDeps } from './mutation.ts'
import { createRegisterProduct, type RegisterDeps } from './register.ts'
import { registrationStore } from './stores.ts'
import { createTransferMutations } from './transfers.ts'
import { transferTypedData } from './typed-data.ts'

export type MutationDeps = {
  readonly database: Pick<Database, 'query' | 'transaction'>
  readonly approvals: Approvals
} & WriteDeps &
  Omit<RegisterDeps, 'registrations'> &
  BindDeps &
  ClaimDeps

export function mutationResolvers(deps: MutationDeps): ResolverMap {
  const writes = createWrites(deps)
  const decisions = approvalResolvers(deps.approvals, writes)
  return {
    ...decisions,
    Query: { ...decisions['Query'], transferTypedData: transferTypedData(deps.transfers) },
    Mutation: {
      ...decisions['Mutation'],
      registerProduct: createRegisterProduct({ ...deps, registrations: registrationStore(deps.database) }, writes),
      bindTag: createBindTag(deps, writes),
      claimProduct: createClaimProduct(deps, writes),
      ...createTransferMutations(deps, writes),
      ...createLifecycleMutations(deps, writes),
    },
  }
}

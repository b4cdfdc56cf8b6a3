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
  const { initiate, accept, cancel, invalidate } = createTransferMutations(deps, writes)
  const { activate, flag, resolve, recycle, announceRecycle } = createLifecycleMutations(deps, writes)
  const decisions = approvalResolvers(deps.approvals, writes)
  return {
    ...decisions,
    Query: { ...decisions['Query'], transferTypedData: transferTypedData(deps.transfers) },
    Mutation: {
      ...decisions['Mutation'],
      registerProduct: createRegisterProduct({ ...deps, registrations: registrationStore(deps.database) }, writes),
      initiateTransfer: initiate,
      acceptTransfer: accept,
      cancelTransfer: cancel,
      invalidateNonce: invalidate,
      bindTag: createBindTag(deps, writes),
      activateProduct: activate,
      claimProduct: createClaimProduct(deps, writes),
      flagProduct: flag,
      resolveProduct: resolve,
      recycleProduct: recycle,
      announceRecycle,
    },
  }
}

/** The requests for approval as keys read and decide them (decisions/0021). */
import type { GraphqlContext } from '../context.ts'
import { graphqlError } from '../errors.ts'
import { type Input, type InputReader } from './inputs.ts'
import { mutation, rejectedAt, type Writes } from './mutation.ts'
import { listKey, type PageArguments, readConnection } from '../queries/pages.ts'
import type { ResolverMap } from '../schema.ts'
import { permits } from '../../access/rights.ts'
import type { Approvals, Decided, Decider } from '../../access/approvals/approvals.ts'
import { type Approval, type ApprovalStatus, isApprovalId, parseFacts } from '../../access/approvals/store.ts'

type ListArguments = PageArguments & { readonly status?: ApprovalStatus | null }
type DecisionInput = Input<'approvalId', never>

export function approvalResolvers(approvals: Approvals, { awaitBlock }: Pick<Writes, 'awaitBlock'>): ResolverMap {
  async function payloadOf(decided: Decided) {
    if (!decided.ok) return { ...rejectedAt('approvalId', decided.message), approval: decided.approval }
    const { approval, block } = decided
    if (block !== null) await awaitBlock(block)
    const isDone = approval.status !== 'FAILED'
    const errors = isDone ? [] : [{ field: 'approvalId', message: approval.failure ?? 'The transaction failed.' }]
    return { success: isDone, errors, txHash: approval.txHash, approval }
  }
  const readId = ({ approvalId }: DecisionInput, read: InputReader) =>
    isApprovalId(approvalId)
      ? { id: approvalId }
      : read.reject('approvalId', 'An approval has an id of 12 letters and digits, such as k3x9a0qz12ab.')

  return {
    Query: {
      async approval(_root: unknown, { id }: { readonly id: string }, context: GraphqlContext) {
        const found = isApprovalId(id) ? await approvals.find(id) : null
        return found !== null && (await isVisible(found, context)) ? found : null
      },
      async approvals(_root: unknown, given: ListArguments, { key }: GraphqlContext) {
        const filter = { status: given.status ?? undefined, brands: key.brands }
        return readConnection<Approval>(given, listKey('instant', 'approvals', filter), (page) => ({
          rows: approvals.page(filter, page),
          count: () => approvals.count(filter),
          placeOf: ({ requestedAt, pk }) => [requestedAt, String(pk)],
        }))
      },
    },
    Mutation: {
      approveRequest: mutation(readId, async ({ id }, context) =>
        payloadOf(await approvals.approve(id, deciderOf(context))),
      ),
      rejectRequest: mutation(readId, async ({ id }, context) => {
        const found = context.verbs.has('approve') ? null : await approvals.find(id)
        const isForeign = found !== null && found.requestedBy !== deciderOf(context).who
        if (isForeign && (await isVisible(found, context)))
          throw graphqlError('FORBIDDEN', 'A key without the scope approve can reject its own requests only.')
        return payloadOf(await approvals.reject(id, deciderOf(context)))
      }),
    },
    Approval: {
      act: ({ act }: Approval) => act.toUpperCase().replace('-', '_'),
      facts: ({ facts }: Approval) => parseFacts(facts),
      product: ({ act, subject }: Approval, _args: unknown, { loaders }: GraphqlContext) =>
        act === 'recycle' ? loaders.productByToken.load(BigInt(subject)) : null,
    },
  }
}

function deciderOf({ key, requestId }: GraphqlContext): Decider {
  return { who: `key:${key.id}`, requestId, key }
}

async function isVisible({ act, subject }: Approval, { key, loaders }: GraphqlContext): Promise<boolean> {
  if (key.brands === null) return true
  return act === 'recycle' && permits(key.brands, await loaders.productByToken.load(BigInt(subject)))
}

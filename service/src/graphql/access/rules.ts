/**
 * The verbs that each field of the schema needs. Every field of Query, Mutation and Subscription has a rule; `enforce.ts` applies them, and
 * docs/graphql.md shows them.
 */
import type { ProductFilter } from '../queries/filter.ts'
import type { Verb } from '../../access/rights.ts'

/** Verbs of which one suffices. */
type Need = readonly Verb[]

/**
 * `needs` must all be met. `about` is what the brands of a key are compared with: the product or transfer that the input names, the
 * brand that it registers, or the product of a request for approval, which is compared where it is decided. Fields that only read have
 * none: their stores hold the products of the brands only.
 */
export type Rule = {
  readonly needs: (args: RuleArguments) => readonly Need[]
  readonly about?: 'product' | 'brand' | 'approval'
  /** Explains in the documentation how the arguments change the needs. */
  readonly note?: string
}

/** The arguments of fields that a rule may look at. */
export type RuleArguments = Readonly<{
  filter?: (ProductFilter & { readonly party?: string | null }) | null
  input?: Readonly<{ action?: keyof typeof signedStep; reports?: readonly (keyof typeof reportVerb)[] }>
}>

const all =
  (...needs: readonly Verb[]) =>
  () =>
    needs.map((verb) => [verb])
const reading: Rule = { needs: all('read:products') }
const readingBy = (isByOwner: (args: RuleArguments) => boolean): Rule => ({
  needs: (args) => [['read:products'], ...(isByOwner(args) ? [['read:owners'] as const] : [])],
  note: '`read:owners` too, where the filter is by owner or party',
})
const changing = (verb: Verb): Rule => ({ needs: all(verb), about: 'product' })
const ofOwners: Rule = { needs: all('read:owners') }
const ofTaps: Rule = { needs: all('read:taps') }
/** A key that may ask for an act sees the outcome of its requests. */
const decided = (): readonly Need[] => [['approve', 'recycle']]

/** The verb for each report. INVESTIGATION belongs to a recall (spec §3), STOLEN_CONFIRMED to a theft. */
const reportVerb = {
  LOST: 'flag:lost',
  STOLEN: 'flag:stolen',
  STOLEN_CONFIRMED: 'flag:stolen',
  RECALL: 'flag:recall',
  INVESTIGATION: 'flag:recall',
  TAMPER: 'flag:tamper',
} as const

/** The data to sign names the owner: it takes the verb of the step, or the right to read owners. */
const signedStep = {
  INITIATE: 'transfer',
  ACCEPT: 'transfer',
  CANCEL: 'transfer',
  CLAIM: 'claim',
  RECYCLE: 'recycle',
  INVALIDATE: 'transfer',
} as const

export const rules: Readonly<Record<string, Rule>> = {
  'Query.product': reading,
  'Query.products': readingBy(({ filter }) => namesOwner(filter)),
  'Query.transfers': readingBy(({ filter }) => typeof filter?.party === 'string'),
  'Query.transfer': reading,
  'Query.events': reading,
  'Query.productStats': reading,
  'Query.node': reading,
  'Query._meta': reading,
  'Query.transferTypedData': {
    needs: ({ input: { action } = {} }) => [
      [...(action === undefined ? Object.values(signedStep) : [signedStep[action]]), 'read:owners'],
    ],
    note: 'of the verbs only that of the step',
    about: 'product',
  },
  'Query.taps': ofTaps,
  'Query.tapAnomalies': ofTaps,
  'Query.approval': { needs: decided },
  'Query.approvals': { needs: decided },
  'Mutation.registerProduct': { needs: all('mint'), about: 'brand' },
  'Mutation.initiateTransfer': changing('transfer'),
  'Mutation.acceptTransfer': changing('transfer'),
  'Mutation.cancelTransfer': changing('transfer'),
  'Mutation.invalidateNonce': changing('transfer'),
  'Mutation.bindTag': changing('bind'),
  'Mutation.activateProduct': changing('activate'),
  'Mutation.claimProduct': changing('claim'),
  'Mutation.flagProduct': {
    needs: ({ input: { reports = [] } = {} }) =>
      reports.length === 0 ? [Object.values(reportVerb)] : reports.map((report) => [reportVerb[report]]),
    note: 'all that the reports need',
    about: 'product',
  },
  'Mutation.resolveProduct': changing('resolve'),
  'Mutation.recycleProduct': changing('recycle'),
  'Mutation.announceRecycle': changing('recycle'),
  'Mutation.approveRequest': { needs: all('approve'), about: 'approval' },
  'Mutation.rejectRequest': { needs: decided, about: 'approval', note: 'with `recycle` alone its own requests' },
  'Subscription.events': reading,
  'Subscription.productTransferred': reading,
  'Subscription.productVerified': reading,
  'Product.currentOwner': ofOwners,
  'Product.taps': ofTaps,
  'Transfer.from': ofOwners,
  'Transfer.to': ofOwners,
  'HistoryEvent.actor': ofOwners,
  'HistoryEvent.from': ofOwners,
  'HistoryEvent.to': ofOwners,
}

/** Returns whether a filter selects by owner, which shows who owns what. */
function namesOwner(filter: ProductFilter | null | undefined): boolean {
  if (filter === null || filter === undefined) return false
  const parts = [...(filter.and ?? []), ...(filter.or ?? []), ...(filter.not ? [filter.not] : [])]
  return typeof filter.owner === 'string' || parts.some(namesOwner)
}

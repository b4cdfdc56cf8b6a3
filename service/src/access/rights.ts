/**
 * The rights of API keys (spec §5): a scope is a verb, or an alias of several. A key with brands reads and changes the products of these
 * brands only.
 */
export const verbs = [
  'mint',
  'bind',
  'activate',
  'claim',
  'transfer',
  'flag:lost',
  'flag:stolen',
  'flag:recall',
  'flag:tamper',
  'resolve',
  'recycle',
  'approve',
  'read:products',
  'read:owners',
  'read:taps',
  'passport:interest',
  'passport:authority',
] as const
export type Verb = (typeof verbs)[number]

/**
 * The scopes of keys from before there were verbs. What a write or a tap answers with has its owner in it, so that these aliases include
 * `read:owners`; without `read:products` that verb opens no query. `approve` is given by name only: a second key is one that was meant to be.
 * So are the access tiers of product passports, `passport:interest` and `passport:authority`.
 */
const aliases = {
  read: ['read:products', 'read:owners'],
  write: [...verbs.filter((verb) => !/^(?:read|passport):|^approve$/.test(verb)), 'read:owners'],
  taps: ['read:taps', 'read:owners'],
} as const satisfies Readonly<Record<string, readonly Verb[]>>

export const scopes = ['read', 'write', 'taps', ...verbs] as const
export type Scope = (typeof scopes)[number]

/** Acts that can need the approval of a second key or operator, as the setting APPROVALS names them. */
export const approvalActs = ['recycle', 'batch-revoke', 'key-deletion'] as const
/** The setting `batch-revoke` is for both ways: what two have revoked, one does not restore. */
export type ApprovalAct = (typeof approvalActs)[number] | 'batch-restore'

/** Returns the verbs of scopes, in the order of the list. */
export function verbsOf(given: readonly Scope[]): Verb[] {
  const all = new Set<Verb>(
    given.flatMap((scope) => (scope in aliases ? aliases[scope as keyof typeof aliases] : (scope as Verb))),
  )
  return verbs.filter((verb) => all.has(verb))
}

/** The brands of a key; null stands for all products, also those without a brand. */
export type Brands = readonly string[] | null

/** Returns whether a key with these brands may read and change a product. A product that is not known is of no brand. */
export function permits(brands: Brands, product: { readonly brand: string | null } | null): boolean {
  if (brands === null) return true
  return product !== null && product.brand !== null && brands.includes(product.brand)
}

/**
 * Access tiers of product details (EN 18239): the public, a legitimate interest, an authority. Restricted elements are in a document of their
 * own for each tier. The public details hold its hash, so that the hash on chain covers it, too. A salt keeps the hash from being guessed.
 */
import { randomBytes } from 'node:crypto'
import { metadataHashOf, type Hex } from '@touchstone/verdict'
import canonicalize from 'canonicalize'
import { z } from 'zod'
import { detailsError, parseDetails, type ProductDetails, type Tier, tiers } from '../../domain/product-details.ts'
import { isObject, parseJson } from '../../lib/json.ts'
import { type ElementPath, parseElementPath } from './element-path.ts'

/** Members that a tier may restrict, whole or in part. Identity, pictures, features to compare and recalls stay public. */
const restrictable =
  'model categories care repair spareParts substances materials recycling certificates footprint facility'.split(' ')

const mostPaths = 50
const maxBytes = 16_384

/** The document of a tier as it is stored and hashed. */
export type RestrictedText = { readonly tier: Tier; readonly body: string; readonly hash: Hex }

type Split =
  | { readonly ok: true; readonly details: unknown; readonly restricted: readonly RestrictedText[] }
  | { readonly ok: false; readonly message: string }

/**
 * Splits a document by its member `access`, which lists the paths of each tier. The rest is public and holds a commitment for every tier, so
 * that it does not show which tier has elements. A document without `access` is returned as it is.
 */
export function splitByTier(document: unknown): Split {
  if (isObject(document) && document['restricted'] !== undefined) return { ok: false, message: ownCommitments }
  if (!isObject(document) || document['access'] === undefined) return { ok: true, details: document, restricted: [] }
  const { access, ...whole } = document
  const error = detailsError(whole)
  if (error !== null) return { ok: false, message: error }
  const lists = parseAccess(access)
  if (typeof lists === 'string') return { ok: false, message: lists }
  const rest = structuredClone(whole)
  const restricted: RestrictedText[] = []
  for (const tier of tiers) {
    const elements = []
    for (const path of lists[tier]) {
      const value = takenFrom(rest, path)
      if (value === undefined)
        return { ok: false, message: `The path ${written(path)} of tier ${tier} names no member of the document.` }
      elements.push({ path, value })
    }
    const body = canonicalize({ tier, salt: randomBytes(32).toString('hex'), elements }) ?? ''
    if (Buffer.byteLength(body) > maxBytes)
      return { ok: false, message: `The elements of tier ${tier} may have at most 16 kB.` }
    restricted.push({ tier, body, hash: metadataHashOf(body) })
  }
  const commitments = Object.fromEntries(restricted.map(({ tier, hash }) => [tier, hash]))
  return { ok: true, details: { ...rest, restricted: commitments }, restricted }
}

/** Commitments are public. In details of another brand they would show its keys the documents behind them. */
const ownCommitments =
  'Product details have no member restricted in a file: list the restricted elements in access, and restricted is made of them.'

/** Returns the paths of each tier, or a sentence that says what is wrong. */
function parseAccess(access: unknown): Readonly<Record<Tier, readonly ElementPath[]>> | string {
  const shape = 'access names paths for each tier, such as {"interest": ["substances"], "authority": ["facility"]}.'
  if (!isObject(access) || Object.keys(access).some((key) => !tiers.some((tier) => tier === key))) return shape
  const lists: Record<Tier, ElementPath[]> = { interest: [], authority: [] }
  for (const tier of tiers) {
    const paths = access[tier] ?? []
    if (!Array.isArray(paths) || paths.length > mostPaths) return shape
    for (const text of paths as readonly unknown[]) {
      const path = typeof text === 'string' ? parseElementPath(text) : null
      if (path === null || !isRestrictable(path))
        return `A path of access begins with ${restrictable.join(', ')} and ends with the name of a member, such as footprint.verifiedBy.`
      lists[tier].push(path)
    }
  }
  const all = [...lists.interest, ...lists.authority]
  const double = all.find((path, index) => all.some((other, at) => at !== index && isWithin(path, other)))
  return double === undefined
    ? lists
    : `The path ${written(double)} of access is named twice, or lies within another one.`
}

const isWithin = (path: ElementPath, other: ElementPath): boolean => other.every((one, index) => path[index] === one)

function isRestrictable(path: ElementPath): boolean {
  const [first] = path
  return restrictable.some((name) => name === first) && typeof path.at(-1) === 'string' && !path.includes('__proto__')
}

const written = (path: ElementPath) =>
  path.map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`)).join('')

/** Removes the member of a path and returns it; undefined where there is none. */
function takenFrom(document: Record<string, unknown>, path: ElementPath): unknown {
  const parent = parentOf(document, path)
  const name = String(path.at(-1))
  if (parent === null || !Object.hasOwn(parent, name)) return undefined
  const value = parent[name]
  delete parent[name]
  return value
}

/** Returns the object that has, or is to have, the member of a path; null where the document has none. */
function parentOf(document: Record<string, unknown>, path: ElementPath): Record<string, unknown> | null {
  let at: unknown = document
  for (const step of path.slice(0, -1)) {
    if (Array.isArray(at) && typeof step === 'number') at = at[step]
    else if (isObject(at) && typeof step === 'string' && Object.hasOwn(at, step)) at = at[step]
    else return null
  }
  return isObject(at) ? at : null
}

const step = z.union([z.string().max(500), z.int().min(0).max(9_999)])
const restrictedSchema = z.object({
  tier: z.enum(tiers),
  elements: z.array(z.object({ path: z.array(step).min(1).max(20), value: z.unknown() })).max(mostPaths),
})

/** Returns public details with the elements of these documents, cleaned like the details themselves. A document of another tier is left out. */
export function withRestricted(publicText: string, documents: readonly RestrictedText[]): ProductDetails | null {
  const whole = parseJson(publicText)
  if (!isObject(whole)) return null
  for (const { tier, body } of documents) {
    const parsed = restrictedSchema.safeParse(parseJson(body))
    if (!parsed.success || parsed.data.tier !== tier) continue
    for (const { path, value } of parsed.data.elements) {
      const parent = isRestrictable(path) ? parentOf(whole, path) : null
      if (parent !== null) parent[String(path.at(-1))] = value
    }
  }
  return parseDetails(JSON.stringify(whole))
}

/**
 * Public product facts, read without a tap. They are the seven fields and the product details, both covered by the hash on chain. Supplier
 * text, cleaned and under fixed keys; a supplier key never reaches the document.
 */
import { isDeepStrictEqual } from 'node:util'
import { parseHttpsUrl } from '../../domain/https-url.ts'
import type { ProductDetails } from '../../domain/product-details.ts'
import { countryOf } from '../country.ts'
import type { ProductText } from '../metadata.ts'

type Fact = string | number | readonly Fact[] | { readonly [name: string]: Fact }
export type PublicFacts = { readonly [name: string]: Fact }

/** Makes the facts of one item. Pictures are left out: they are for the page. */
export function publicFacts(text: ProductText, details: ProductDetails | null): PublicFacts {
  const {
    features: _features,
    picture: _picture,
    drawing: _drawing,
    gtin: _gtin,
    batch: _batch,
    restricted: _restricted,
    ...rest
  } = details ?? {}
  // Cleaned text of a verdict carries a warning beside its fields.
  const { name, brand, description, sku, size, origin, image } = text
  const imageUrl = image === undefined ? null : parseHttpsUrl(image)
  const country = origin === undefined ? null : countryOf(origin)
  return filled({
    name,
    brand,
    description,
    sku,
    size,
    image: imageUrl?.href,
    origin,
    countryOfOrigin: country?.countryCode,
    ...rest,
  })
}

/** Returns the members that all of these have alike: what is common to a model or a batch. Nothing is common to none. */
export function commonOf<T extends object>(all: readonly T[]): Partial<T> {
  const [first, ...others] = all
  const common = Object.entries(first ?? {}).filter(([name, value]) =>
    others.every((other) => isDeepStrictEqual(Reflect.get(other, name), value)),
  )
  return Object.fromEntries(common) as Partial<T>
}

/** Drops members without a value, and lists and objects that are empty. In JSON-LD an empty object is a node without meaning. */
function filled(value: { readonly [name: string]: unknown }): PublicFacts {
  const entries = Object.entries(value).flatMap(([name, member]): [string, Fact][] => {
    const kept = filledValue(member)
    return kept === undefined ? [] : [[name, kept]]
  })
  return Object.fromEntries(entries)
}

function filledValue(value: unknown): Fact | undefined {
  if (typeof value === 'string' || typeof value === 'number') return value
  if (Array.isArray(value)) {
    const members = value.flatMap((member) => filledValue(member) ?? [])
    return members.length === 0 ? undefined : members
  }
  if (typeof value !== 'object' || value === null) return undefined
  const object = filled({ ...value })
  return Object.keys(object).length === 0 ? undefined : object
}

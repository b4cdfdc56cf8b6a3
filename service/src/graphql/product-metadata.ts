/**
 * ProductMetadata (spec §2.9) from the text behind the chain's metadata hash: hostile until cleaned (spec §2.3), custom fields too.
 */
import { cleanText, untrustedOf, type Hex } from '@touchstone/verdict'
import { createRecent } from './recent.ts'
import { parseDay } from './scalars.ts'

export type MetadataSource = { readonly get: (hash: Hex) => Promise<string | undefined> }

export type ProductMetadata = {
  readonly description: string | null
  readonly imageUrl: string | null
  readonly manufactureDate: string | null
  readonly origin: string | null
  readonly customFields: Readonly<Record<string, unknown>> | null
}

const maxDepth = 4
const maxBytes = 16_384
const longestText = 4_000
const longestKey = 100

/** What a hash stands for never changes, so that it is cleaned once; a text that is not there may come at any moment. */
export function createProductMetadata({ get }: MetadataSource): (hash: Hex) => Promise<ProductMetadata | null> {
  const cleaned = createRecent<Hex, ProductMetadata>(2_000)
  return async (hash) => {
    const known = cleaned.get(hash)
    if (known !== undefined) return known
    const text = await get(hash)
    if (text === undefined) return null
    const metadata = productMetadataOf(text)
    cleaned.set(hash, metadata)
    return metadata
  }
}

export function productMetadataOf(text: string): ProductMetadata {
  const parsed = parsedObject(text)
  const { description, image, origin } = untrustedOf(parsed)
  const { manufactureDate, customFields } = parsed
  return {
    description: description ?? null,
    imageUrl: image ?? null,
    manufactureDate: typeof manufactureDate === 'string' ? parseDay(manufactureDate) : null,
    origin: origin ?? null,
    customFields: isObject(customFields) ? bounded(cleanObject(customFields, 1)) : null,
  }
}

function parsedObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}

/** Text, numbers, truth values and null pass cleaned; what lies deeper than four levels is left out. */
function cleanValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return cleanText(value, { max: longestText, multiline: true })
  if (typeof value !== 'object' || value === null) return value
  if (depth > maxDepth) return undefined
  if (Array.isArray(value)) return value.map((one) => cleanValue(one, depth + 1)).filter((one) => one !== undefined)
  return cleanObject(value as Record<string, unknown>, depth)
}

function cleanObject(value: Readonly<Record<string, unknown>>, depth: number): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, one]) => {
      const name = cleanText(key, { max: longestKey })
      const clean = cleanValue(one, depth + 1)
      return name === '' || name === '__proto__' || clean === undefined ? [] : [[name, clean]]
    }),
  )
}

function bounded(value: Record<string, unknown>): Record<string, unknown> | null {
  const isSmall = Object.keys(value).length > 0 && Buffer.byteLength(JSON.stringify(value)) <= maxBytes
  return isSmall ? value : null
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** ProductMetadata (spec §2.9) from the text behind a metadata hash, which is untrusted until it is cleaned (spec §2.3). */
import { cleanText, untrustedOf, type Hex } from '@touchstone/verdict'
import { LRUCache } from 'lru-cache'
import type { MetadataSource } from '../../assets/verdicts.ts'
import { isObject, parseJsonObject, type JsonObject } from '../../lib/json.ts'
import { parseDay } from '../../domain/text.ts'

type ProductMetadata = ReturnType<typeof parseProductMetadata>

const maxDepth = 4
const maxBytes = 16_384
const longestText = 4_000
const longestKey = 100

/** Caches cleaned metadata, because the text of a hash never changes. A missing text is asked for again. */
export function createProductMetadata({ get }: MetadataSource): (hash: Hex) => Promise<ProductMetadata | null> {
  const cleaned = new LRUCache<Hex, ProductMetadata>({ max: 2_000 })
  return async (hash) => {
    const known = cleaned.get(hash)
    if (known !== undefined) return known
    const text = await get(hash)
    if (text === undefined) return null
    const metadata = parseProductMetadata(text)
    cleaned.set(hash, metadata)
    return metadata
  }
}

export function parseProductMetadata(text: string) {
  const parsed = parseJsonObject(text) ?? {}
  const { description, image, origin } = untrustedOf(parsed)
  const { manufactureDate, customFields } = parsed
  return {
    description: description ?? null,
    imageUrl: image ?? null,
    manufactureDate: typeof manufactureDate === 'string' ? parseDay(manufactureDate) : null,
    origin: origin ?? null,
    customFields: isObject(customFields) ? withinBounds(cleanObject(customFields, 1)) : null,
  }
}

function cleanObject(value: JsonObject, depth: number): JsonObject {
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, one]) => {
      const name = cleanText(key, { max: longestKey })
      const clean = cleanValue(one, depth + 1)
      return name === '' || name === '__proto__' || clean === undefined ? [] : [[name, clean]]
    }),
  )
}

/** Cleans text; numbers, booleans and null pass. Values below four levels are left out. */
function cleanValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return cleanText(value, { max: longestText, multiline: true })
  if (typeof value !== 'object' || value === null) return value
  if (depth > maxDepth) return undefined
  if (isObject(value)) return cleanObject(value, depth)
  return (value as unknown[]).map((one) => cleanValue(one, depth + 1)).filter((one) => one !== undefined)
}

function withinBounds(value: JsonObject): JsonObject | null {
  return Object.keys(value).length > 0 && Buffer.byteLength(JSON.stringify(value)) <= maxBytes ? value : null
}

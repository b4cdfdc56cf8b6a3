/**
 * Product details: the extended metadata document of a model or batch. An item's metadata names it by `details`, the keccak256 of its
 * RFC 8785 form, so that the hash on chain covers both. It is supplier text: hostile until cleaned (spec §2.3), never checked.
 */
import { cleanText, type Hex } from '@touchstone/verdict'
import { z } from 'zod'
import { isObject, parseJson } from '../lib/json.ts'
import { memoize } from '../lib/memoize.ts'
import { parseGtin } from './gs1/gtin.ts'
import { parseHttpsUrl } from './https-url.ts'
import { parseSerial } from './gs1/serial.ts'

/** Kinds of product that the pages have a word for, in every language. */
export const productKinds = [
  'bag',
  'jacket',
  'garment',
  'shoes',
  'watch',
  'jewellery',
  'bicycle',
  'furniture',
  'device',
  'cosmetics',
  'bottle',
  'artwork',
] as const

/** Readers for whom elements of a document can be restricted (EN 18239); the public is no tier. */
export const tiers = ['interest', 'authority'] as const
export type Tier = (typeof tiers)[number]

/** Cleaned product details. What is wrong, or empty after cleaning, is left out; a list may be empty. */
export type ProductDetails = z.infer<typeof readSchema>

const halfLetterFault = 'holds half of a surrogate pair; send well-formed Unicode'
const lostLetterFault = 'holds U+FFFD, so that a letter was lost; write it again, in UTF-8'

/** Returns why a text cannot be stored, as the end of a sentence, or null. A decoder writes U+FFFD for what it cannot read. */
export function letterFault(text: string): string | null {
  if (!text.isWellFormed()) return halfLetterFault
  return text.includes('\uFFFD') ? lostLetterFault : null
}

/**
 * Makes the document's schema. `strict` is for a document to be stored: an unknown key is an error, and text stays as it is. The
 * other is for reading: every text is cleaned, and what is unknown or wrong is left out.
 */
function makeSchema(strict: boolean) {
  const text = (max: number, multiline = false) =>
    z
      .string()
      .max(strict ? max : 8 * max)
      .refine((value) => value.isWellFormed(), halfLetterFault)
      .refine((value) => !strict || !value.includes('\uFFFD'), lostLetterFault)
      .transform((value) => cleanText(value, { max, multiline }))
      .refine((value) => value !== '', 'must hold text that can be seen')
  const line = text(200)
  const paragraph = text(1_000, true)
  const url = z
    .string()
    .max(2_048)
    .refine((value) => parseHttpsUrl(value) !== null, 'must be an https URL without a user name')
  const day = z.iso.date('must be a day such as 2026-03-01')
  const country = z.string().regex(/^[A-Z]{2}$/, 'must be a country code of two letters, such as FR')
  // Numbers are text: JSON readers round them differently, and so would the hash.
  const decimal = z.string().regex(/^\d{1,9}(?:\.\d{1,6})?$/, 'must be a decimal number as text, such as "12.5"')
  const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hex digits')
  const keccak = z.string().regex(/^0x[0-9a-f]{64}$/, 'must be 0x and 64 lower-case hex digits')
  const side = z.int().min(1).max(4_096)
  /** BCP 47. */
  const languageTag = z.string().regex(/^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}$/, 'must be a language tag such as fr')
  const batchRule = 'must have 1 to 20 letters, digits or signs of GS1 (CSET 82)'
  const casNumber = z.string().regex(/^\d{2,7}-\d{2}-\d$/, 'must be a CAS number such as 7440-02-0')
  const percentOfSide = z.int().min(0).max(100)

  /** `webp`, `avif` and `jpeg` are the SHA-256 of the forms of one picture; `width` and `height` its pixels. */
  const picture = object({
    webp: sha256,
    avif: optional(sha256),
    jpeg: optional(sha256),
    width: side,
    height: side,
    alt: optional(line),
  })
  /** A text to read and a page to open. */
  const guidance = object({ text: optional(paragraph), url: optional(url) })

  return object({
    kind: optional(z.enum(productKinds)),
    language: optional(languageTag),
    /** The class (GTIN-14) that the document describes, and the batch (AI 10) if it describes one batch only. */
    gtin: optional(z.string().refine((value) => parseGtin(value).ok, 'must be a GTIN of 14 digits')),
    batch: optional(z.string().refine((value) => parseSerial(value).ok, batchRule)),
    model: optional(object({ name: optional(line), number: optional(line), description: optional(text(2_000, true)) })),
    /** Codes of classifications, such as UNSPSC or the EU's Combined Nomenclature. */
    categories: list(object({ code: text(40), name: optional(line), scheme: url }), 5),
    picture: optional(picture),
    /** A line drawing on a transparent ground, for pages that prove nothing. */
    drawing: optional(picture),
    /** Features to compare; `x` and `y` are the place on the picture, in percent from the left and the top. */
    features: list(
      object({
        title: text(60),
        text: optional(line),
        picture: optional(picture),
        x: optional(percentOfSide),
        y: optional(percentOfSide),
      }),
      3,
    ),
    care: list(line, 12),
    repair: optional(guidance),
    spareParts: list(object({ name: line, number: optional(line), until: optional(day), url: optional(url) }), 20),
    substances: list(
      object({
        name: line,
        cas: optional(casNumber),
        percent: optional(decimal),
        location: optional(line),
      }),
      30,
    ),
    /** Percentages are shares of the mass. */
    materials: list(
      object({
        name: line,
        percent: optional(decimal),
        recycledPercent: optional(decimal),
        country: optional(country),
      }),
      20,
    ),
    recycling: optional(guidance),
    certificates: list(
      object({
        name: line,
        issuer: optional(line),
        number: optional(line),
        validUntil: optional(day),
        url: optional(url),
      }),
      10,
    ),
    /** Carbon footprint in kilograms of CO2 equivalent for one `unit`. */
    footprint: optional(
      object({
        kgCo2e: decimal,
        unit: optional(line),
        scope: optional(line),
        method: optional(line),
        verifiedBy: optional(line),
        url: optional(url),
      }),
    ),
    facility: optional(object({ name: line, id: optional(url), country: optional(country) })),
    recall: optional(object({ text: paragraph, since: optional(day), url: optional(url) })),
    /** Hashes of the documents with the elements of each access tier. */
    restricted: optional(object({ interest: keccak, authority: keccak })),
  })

  function object<T extends z.ZodRawShape>(shape: T) {
    return strict ? (z.strictObject(shape) as unknown as z.ZodObject<T>) : z.object(shape)
  }

  function optional<T extends z.ZodType>(field: T) {
    return strict ? field.optional() : (field.optional().catch(undefined as never) as unknown as z.ZodOptional<T>)
  }

  function list<T extends z.ZodType>(member: T, max: number) {
    const members = z.array(optional(member)).max(max)
    return optional(members.transform((all) => all.filter((one) => one !== undefined)))
  }
}

const storedSchema = makeSchema(true)
const readSchema = makeSchema(false)

/** Returns why a document cannot be stored, in one sentence that names the field; null when it can. */
export function detailsError(input: unknown): string | null {
  const [issue] = storedSchema.safeParse(input).error?.issues ?? []
  if (issue === undefined) return null
  return `Product details${issue.path.length === 0 ? '' : `, field ${issue.path.join('.')}`}: ${issue.message}.`
}

/** Parses the canonical text of a document and cleans it; null for a text that is none. The caller has compared its hash. */
export function parseDetails(text: string): ProductDetails | null {
  return readDetails(text).details
}

/** Cleans each text once. One of 16 kB takes some milliseconds, and the page of a model needs twenty. */
const readDetails = memoize(
  (text: string): { readonly details: ProductDetails | null } => {
    const parsed = readSchema.safeParse(parseJson(text))
    return { details: parsed.success ? parsed.data : null }
  },
  { max: 20_000, maxLength: 16_000_000 },
)

/** Returns the hash of the product details that an item's parsed metadata names, or null. */
export function detailsHashOf(metadata: unknown): Hex | null {
  const hash = isObject(metadata) ? metadata['details'] : undefined
  return typeof hash === 'string' && /^0x[0-9a-f]{64}$/.test(hash) ? (hash as Hex) : null
}

/** Returns the SHA-256 hashes of a document's pictures, without repeats. */
export function pictureHashes({ picture, drawing, features = [] }: ProductDetails): string[] {
  const pictures = [picture, drawing, ...features.map((feature) => feature.picture)]
  return [...new Set(pictures.flatMap((one) => [one?.webp, one?.avif, one?.jpeg]))].filter((hash) => hash !== undefined)
}

/** A picture of product details: hashes of its forms, and its size. */
export type DetailsPicture = NonNullable<ProductDetails['picture']>

/** Leaves out the pictures that are not stored, and the forms of a picture that are not. */
export function withStoredPictures(details: ProductDetails, stored: ReadonlySet<string>): ProductDetails {
  const kept = (one: DetailsPicture | undefined): DetailsPicture | undefined => {
    if (one === undefined || !stored.has(one.webp)) return undefined
    const { avif, jpeg, ...rest } = one
    return { ...rest, ...(stored.has(avif ?? '') && { avif }), ...(stored.has(jpeg ?? '') && { jpeg }) }
  }
  const { picture, drawing, features, ...rest } = details
  return {
    ...rest,
    picture: kept(picture),
    drawing: kept(drawing),
    features: features?.map((feature) => ({ ...feature, picture: kept(feature.picture) })),
  }
}

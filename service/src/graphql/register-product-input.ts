/** RegisterProductInput as a registration and the metadata that the mint commits to (spec §4.9); everything wrong is said at once. */
import { cleanText, untrustedOf, type Hex } from '@touchstone/verdict'
import { keccak256, stringToHex } from 'viem'
import { canonicalMetadata } from '../store/metadata.ts'
import type { Registration } from '../store/registrations.ts'
import { idempotencyKeyOf, isGiven, itemOf, say, textOf } from './mutation-inputs.ts'
import type { Gs1, InputError, Maybe } from './mutation-inputs.ts'

export type RegisterProductInput = Readonly<{
  tagId: string
  name: string
  brand?: Maybe<string>
  serialNumber?: Maybe<string>
  gtin?: Maybe<string>
  metadata?: Maybe<MetadataInput>
  idempotencyKey?: Maybe<string>
}>

type MetadataInput = Readonly<{
  description?: Maybe<string>
  imageUrl?: Maybe<string>
  manufactureDate?: Maybe<string>
  origin?: Maybe<string>
  customFields?: unknown
}>

/** `name` and `brand` are cleaned, as the index shows them. */
export type NewProduct = Readonly<{
  registration: Registration
  metadata: Readonly<{ body: string; hash: Hex }>
  name: string
  brand: string | null
}>

export function newProductOf(input: RegisterProductInput, gs1: Gs1, errors: InputError[]): NewProduct | null {
  const tagId = tagIdOf(input.tagId, errors)
  const name = textOf(input.name, { field: 'name', max: 200 }, errors)
  const brand = textOf(input.brand, { field: 'brand', max: 200 }, errors)
  const item = itemOf(input, gs1, errors)
  const serial = isGiven(input.gtin) ? null : textOf(input.serialNumber, { field: 'serialNumber', max: 200 }, errors)
  const metadata = metadataOf(input, { name, brand }, errors)
  const key = idempotencyKeyOf(input.idempotencyKey, errors)
  const shown = untrustedOf({ name, brand })
  if (!isGiven(shown.name) && errors.every(({ field }) => field !== 'name'))
    say(errors, 'name', 'A product needs a name that can be seen.')
  if (tagId === null || metadata === null || key === null || shown.name === undefined || errors.length > 0) return null
  const row = { tagId, serial: item?.serial ?? serial, gtin: item?.gtin ?? null, metadataHash: metadata.hash }
  const requestHash = keccak256(stringToHex(JSON.stringify([row.tagId, row.serial, row.gtin, row.metadataHash])))
  return { registration: { key, requestHash, ...row }, metadata, name: shown.name, brand: shown.brand ?? null }
}

function tagIdOf(text: string, errors: InputError[]): string | null {
  const tagId = textOf(text, { field: 'tagId', max: 200 }, errors)
  if (tagId !== null && cleanText(tagId, { max: 200 }) === tagId) return tagId
  if (errors.some(({ field }) => field === 'tagId')) return null
  return say(
    errors,
    'tagId',
    'A tagId is your name of the tag: 1 to 200 characters that can be seen, without double spaces or spaces at its ends.',
  )
}

/** The canonical text; `imageUrl` is its `image` (spec §2.3). */
function metadataOf(
  { metadata }: RegisterProductInput,
  { name, brand }: { readonly name: string | null; readonly brand: string | null },
  errors: InputError[],
): NewProduct['metadata'] | null {
  const { manufactureDate = null, customFields = null } = metadata ?? {}
  const description = textOf(metadata?.description, { field: 'metadata.description', max: 4_000, lines: true }, errors)
  const origin = textOf(metadata?.origin, { field: 'metadata.origin', max: 200 }, errors)
  const image = imageOf(metadata?.imageUrl, errors)
  const all = { name, brand, description, origin, image, manufactureDate, customFields }
  const canonical = canonicalMetadata(Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null)))
  if (canonical.ok) return canonical
  return say(errors, fieldOfKey[canonical.key ?? ''] ?? 'metadata', canonical.message)
}

const fieldOfKey: Readonly<Record<string, string>> = {
  manufactureDate: 'metadata.manufactureDate',
  customFields: 'metadata.customFields',
}

function imageOf(text: Maybe<string>, errors: InputError[]): string | null {
  const image = textOf(text, { field: 'metadata.imageUrl', max: 2_048 }, errors)
  if (image === null || untrustedOf({ image }).image !== undefined) return image
  return say(errors, 'metadata.imageUrl', 'An image is an https or ipfs URL without user name and password.')
}

/**
 * The mutation `registerProduct` (spec §4.9): the registration is stored, then the token minted. That happens once per key, under an id
 * that follows from the key, so that no reorganisation can move it to another product. The registration of a mint that was rejected is
 * removed, so that the tag's name is free again; that of a mint that may still come stays.
 */
import { cleanText, type Hex, untrustedOf } from '@touchstone/verdict'
import { keccak256, stringToHex } from 'viem/utils'
import type { ItemStore } from '../../assets/items.ts'
import { canonicalMetadata } from '../../assets/metadata.ts'
import type { WriteRequest } from '../../chain/transactions/calls.ts'
import type { TransferReads } from '../../chain/transactions/transfer-reads.ts'
import { formatInstant } from '../../domain/text.ts'
import type { ProductRow } from '../../index/queries/products.ts'
import { createKeyedQueue } from '../../lib/async/concurrency.ts'
import { reasonOf, ServiceError } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import type { GraphqlContext } from '../context.ts'
import { modelError, type ModelDeps } from './models.ts'
import { isFilled, type Input, type InputError, type InputReader, type Maybe } from './inputs.ts'
import { nullIfIncomplete } from '../errors.ts'
import { mutation, ownedKey, rejected, rejectedAt, storedKey, type Writes, type Written } from './mutation.ts'
import type { Registration, RegistrationOutcome, RegistrationStore } from './stores.ts'

export type RegisterDeps = ModelDeps &
  Readonly<{
    registrations: RegistrationStore
    items: Pick<ItemStore, 'tokenOfItem'>
    metadata: Readonly<{ put: (metadata: NewProduct['metadata']) => Promise<unknown> }>
    transfers: Pick<TransferReads, 'position'>
    /** The first owner of registered products; null without an operator key. */
    operator: Hex | null
    log: Log
  }>

export function createRegisterProduct(
  { registrations, items, metadata, transfers, operator, classes, log }: RegisterDeps,
  { executeWrite, previousRequest }: Writes,
) {
  // One at a time per key. A rejected request does not remove what the next one under its key is about to use. Where that one is in
  // another process, it is not signed and begins again.
  const inTurn = createKeyedQueue<string>()

  return mutation(readNewProduct, async (product, context) => {
    if (operator === null) return rejectedAt('input', 'No operator key is configured: nothing can be minted.')
    const foreign = await modelError({ classes }, product.registration.gtin, context)
    if (foreign !== null) return rejected([foreign])
    const [own, former] = [ownedKey(context.key, product.key), product.key]
    const key = await storedKey(own, former, (one) => registrations.has(one))
    return inTurn(key, () =>
      register({ ...product, registration: { ...product.registration, key } }, operator, context),
    )
  })

  async function register(product: KeyedProduct, to: Hex, context: GraphqlContext, attempt = 1): Promise<unknown> {
    const { registration } = product
    const { key } = registration
    const outcome = await registrations.add(registration)
    if (outcome !== 'added' && outcome !== 'known') return rejected([takenErrors[outcome]])
    try {
      if (outcome === 'added' && (await isItemTaken(registration))) {
        await registrations.remove(key)
        return rejected([takenErrors.item_taken])
      }
      await metadata.put(product.metadata)
      const { tokenId, result } = await mint(registration, to, context)
      if (result.ok) {
        const minted = await mintedProduct(product, result, context)
        const productId = (result.tokenIds[0] ?? tokenId)?.toString() ?? null
        return { success: true, errors: [], txHash: result.txHash, productId, product: minted }
      }
      // Another process that tried the same was rejected, and has removed the registration.
      if (result.code === 'WITHDRAWN' && attempt < mostStarts) return await register(product, to, context, attempt + 1)
      await registrations.remove(key)
      return rejected(result.errors, result.txHash)
    } catch (error) {
      // The store keeps a registration whose mint was signed.
      await registrations
        .remove(key)
        .catch((reason: unknown) => log.warn('registration not removed', { reason: reasonOf(reason) }))
      throw error
    }
  }

  /**
   * Mints under the id of the key. A repeat keeps the id and the owner that were signed: the issuer's account may have been replaced
   * since. An earlier version's mint has no id before it is mined.
   */
  async function mint({ key, metadataHash }: Registration, to: Hex, context: GraphqlContext) {
    const operationKey = `register:${key}`
    const write = (request: WriteRequest) =>
      executeWrite(request, operationKey, context, { guard: (sql) => registrations.keep(sql, key) })
    const sent = await previousRequest(operationKey)
    if (sent?.kind === 'mint') return { tokenId: null, result: await write({ ...sent, metadataHash }) }
    if (sent?.kind === 'mintWithId') return { tokenId: sent.tokenId, result: await write({ ...sent, metadataHash }) }
    for (let attempt = 0; ; attempt += 1) {
      const tokenId = productIdOf(key, attempt)
      const result = await write({ kind: 'mintWithId', to, tokenId, metadataHash })
      const isTaken = !result.ok && result.code === 'TOKEN_ID_TAKEN'
      if (!isTaken || attempt === mostIds) return { tokenId, result }
    }
  }

  async function isItemTaken({ gtin, serial }: Registration): Promise<boolean> {
    return gtin !== null && serial !== null && (await items.tokenOfItem({ gtin, serial })) !== null
  }

  /** Returns the product of the index. While the index is behind, it is made of the chain's record and the registration. */
  async function mintedProduct(product: KeyedProduct, { tokenIds, indexed }: Written, { loaders }: GraphqlContext) {
    const [tokenId] = tokenIds
    if (tokenId === undefined) return null
    const found = indexed ? await nullIfIncomplete(loaders.productByToken.clear(tokenId).load(tokenId)) : null
    return found ?? unindexedProduct(product, tokenId)
  }

  async function unindexedProduct(
    { registration, name, brand }: KeyedProduct,
    tokenId: bigint,
  ): Promise<ProductRow | null> {
    const position = await transfers.position(tokenId).catch((error: unknown) => {
      if (error instanceof ServiceError) return null // minted all the same
      throw error
    })
    if (position === null || position.record.state === 0) return null
    const { owner, state, flags, timestamp } = position.record
    const { tagId, serial, gtin, metadataHash } = registration
    const since = formatInstant(timestamp)
    const known = { tokenId, owner, state, flags, metadataHash, tagId, name, brand, serial, gtin }
    return { ...known, pk: null, tagHash: null, verified: false, createdAt: since, updatedAt: since, indexed: null }
  }
}

/** Ids that are tried for one key, where another product has the first: once in millions of registrations. */
const mostIds = 4
/** Starts of one request, where other processes remove its registration meanwhile. */
const mostStarts = 4
const lowestId = 10n ** 14n

/** Returns the token id for a key: 15 digits, which JSON numbers and spreadsheets hold exactly. */
function productIdOf(key: string, attempt: number): bigint {
  return lowestId + (BigInt(keccak256(stringToHex(`product ${attempt} ${key}`))) % (9n * lowestId))
}

const takenErrors: Readonly<Record<Exclude<RegistrationOutcome, 'added' | 'known'>, InputError>> = {
  key_taken: { field: 'idempotencyKey', message: 'This idempotency key was used for another registration.' },
  tag_taken: { field: 'tagId', message: 'Another product is registered under this tagId.' },
  item_taken: { field: 'serialNumber', message: 'Another product is registered under this GTIN and serial number.' },
}

type RegisterProductInput = Input<'tagId' | 'name', 'brand' | 'serialNumber' | 'gtin' | 'idempotencyKey'> & {
  readonly metadata?: Maybe<MetadataInput>
}

type MetadataInput = Input<never, 'description' | 'imageUrl' | 'manufactureDate' | 'origin'> & {
  readonly customFields?: unknown
}

/** `key` is the caller's; `name` and `brand` are cleaned, as the index has them. */
type NewProduct = Readonly<{
  key: string
  registration: Omit<Registration, 'key'>
  metadata: Readonly<{ body: string; hash: Hex }>
  name: string
  brand: string | null
}>

type KeyedProduct = NewProduct & { readonly registration: Registration }

function readNewProduct(input: RegisterProductInput, read: InputReader): NewProduct | null {
  const tagId = readTagId(input.tagId, read)
  const name = read.text(input.name, 'name')
  const brand = read.text(input.brand, 'brand')
  const item = read.item(input)
  const serial = isFilled(input.gtin) ? null : read.text(input.serialNumber, 'serialNumber')
  const metadata = readMetadata(input.metadata ?? {}, { name, brand }, read)
  const key = read.idempotencyKey(input.idempotencyKey)
  const clean = untrustedOf({ name, brand })
  if (name !== null && !isFilled(clean.name)) read.reject('name', 'A product needs a name that can be seen.')
  if (tagId === null || metadata === null || key === null || clean.name === undefined) return null
  const row = { tagId, serial: item?.serial ?? serial ?? null, gtin: item?.gtin ?? null, metadataHash: metadata.hash }
  const requestHash = keccak256(stringToHex(JSON.stringify([row.tagId, row.serial, row.gtin, row.metadataHash])))
  return { key, registration: { requestHash, ...row }, metadata, name: clean.name, brand: clean.brand ?? null }
}

function readTagId(text: string, read: InputReader): string | null {
  const tagId = read.text(text, 'tagId')
  if (tagId === null || (tagId !== undefined && cleanText(tagId, { max: 200 }) === tagId)) return tagId
  return read.reject(
    'tagId',
    'A tagId is your name of the tag: 1 to 200 characters that can be seen, without double spaces or spaces at its ends.',
  )
}

/** Returns the canonical text. `imageUrl` is its `image` (spec §2.3). */
function readMetadata(
  { description, imageUrl, manufactureDate, origin, customFields }: MetadataInput,
  { name, brand }: { readonly name: Maybe<string>; readonly brand: Maybe<string> },
  read: InputReader,
): NewProduct['metadata'] | null {
  const all = {
    name,
    brand,
    description: read.text(description, 'metadata.description', 4_000, { lines: true }),
    origin: read.text(origin, 'metadata.origin'),
    image: readImage(imageUrl, read),
    manufactureDate,
    customFields,
  }
  const given = Object.entries(all).filter(([, value]) => value !== null && value !== undefined)
  const canonical = canonicalMetadata(Object.fromEntries(given))
  if (canonical.ok) return canonical
  const isField = canonical.key === 'manufactureDate' || canonical.key === 'customFields'
  return read.reject(isField ? `metadata.${canonical.key}` : 'metadata', canonical.message)
}

function readImage(text: Maybe<string>, read: InputReader): string | null | undefined {
  const image = read.text(text, 'metadata.imageUrl', 2_048)
  if (!isFilled(image) || untrustedOf({ image }).image !== undefined) return image
  return read.reject('metadata.imageUrl', 'An image is an https or ipfs URL without user name and password.')
}

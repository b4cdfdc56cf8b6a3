/**
 * The mutation `registerProduct` (spec §4.9): the registration is kept, then the token minted, once for each key. A mint that
 * was refused takes its registration along, so that the tag's name is free again; one that may still come keeps it.
 */
import { ServiceError, reasonOf } from '../errors.ts'
import type { Hex } from '@touchstone/verdict'
import type { TransferReads } from '../chain/transfer-reads.ts'
import type { Log } from '../log.ts'
import type { ItemStore } from '../store/items.ts'
import type { ProductRow } from '../store/products.ts'
import type { Registration, RegistrationOutcome, RegistrationStore } from '../store/registrations.ts'
import type { GraphqlContext } from './context.ts'
import type { Gs1, InputError } from './mutation-inputs.ts'
import { refused, type CarryOut, type Written } from './mutation-writes.ts'
import { newProductOf, type NewProduct, type RegisterProductInput } from './register-product-input.ts'
import { instantOf } from './transfer-rules.ts'

export type RegisterDeps = Readonly<{
  registrations: RegistrationStore
  items: Pick<ItemStore, 'tokenOfItem'>
  metadata: Readonly<{ put: (metadata: NewProduct['metadata']) => Promise<void> }>
  transfers: Pick<TransferReads, 'position'>
  /** The first owner of what is registered; `null` without an operator key. */
  operator: Hex | null
  gs1: Gs1
  log: Log
}>

export function createRegisterProduct(deps: RegisterDeps, { carryOut }: CarryOut) {
  const { registrations, items, metadata, transfers, operator, gs1, log } = deps
  const underWay = new Map<string, Promise<unknown>>()

  async function registerProduct({ input }: { input: RegisterProductInput }, context: GraphqlContext) {
    const errors: InputError[] = []
    const product = newProductOf(input, gs1, errors)
    if (product === null) return refused(errors)
    if (operator === null)
      return refused([{ field: 'input', message: 'No operator key is configured: nothing can be minted.' }])
    return inTurn(product.registration.key, () => register(product, operator, context))
  }

  /** One at a time for each key: a refused request must not take away what the next one under its key is about to use. */
  function inTurn<T>(key: string, run: () => Promise<T>): Promise<T> {
    const turn = (underWay.get(key) ?? Promise.resolve()).catch(() => {}).then(run)
    const tracked = turn.finally(() => {
      if (underWay.get(key) === tracked) underWay.delete(key)
    })
    underWay.set(key, tracked)
    return tracked
  }

  async function register(product: NewProduct, to: Hex, context: GraphqlContext) {
    const { registration } = product
    const { key, metadataHash } = registration
    const outcome = await registrations.add(registration)
    if (outcome !== 'added' && outcome !== 'known') return refused([takenErrors[outcome]])
    if (outcome === 'added' && (await isItemTaken(registration))) {
      await registrations.remove(key)
      return refused([takenErrors.item_taken])
    }
    try {
      await metadata.put(product.metadata)
      const done = await carryOut({ kind: 'mint', to, metadataHash }, `register:${key}`, context)
      if (done.ok)
        return { success: true, errors: [], txHash: done.txHash, product: await shown(product, done, context) }
      await registrations.remove(key)
      return refused(done.errors, done.txHash)
    } catch (error) {
      // Nothing may have been signed; what was stays.
      await registrations
        .remove(key)
        .catch((reason: unknown) => log.warn('registration not removed', { reason: reasonOf(reason) }))
      throw error
    }
  }

  async function isItemTaken({ gtin, serial }: Registration): Promise<boolean> {
    return gtin !== null && serial !== null && (await items.tokenOfItem({ gtin, serial })) !== null
  }

  /** As the index has it; before it has, as the chain has it and as it was registered. */
  async function shown(product: NewProduct, done: Written, { loaders }: GraphqlContext): Promise<ProductRow | null> {
    const [tokenId] = done.tokenIds
    if (tokenId === undefined) return null
    const indexed = done.indexed ? await loaders.productByToken.clear(tokenId).load(tokenId) : null
    return indexed ?? notIndexed(product, tokenId)
  }

  async function notIndexed({ registration, name, brand }: NewProduct, tokenId: bigint): Promise<ProductRow | null> {
    const position = await transfers.position(tokenId).catch((error: unknown) => {
      if (error instanceof ServiceError) return null // minted all the same
      throw error
    })
    if (position === null || position.record.state === 0) return null
    const { owner, state, flags, timestamp } = position.record
    const { tagId, serial, gtin, metadataHash } = registration
    const since = instantOf(timestamp)
    const known = { tokenId, owner, state, flags, metadataHash, tagId, name, brand, serial, gtin }
    return { ...known, pk: null, tagHash: null, verified: false, createdAt: since, updatedAt: since, indexed: null }
  }

  return registerProduct
}

const takenErrors: Readonly<Record<Exclude<RegistrationOutcome, 'added' | 'known'>, InputError>> = {
  key_taken: { field: 'idempotencyKey', message: 'This idempotency key was used for another registration.' },
  tag_taken: { field: 'tagId', message: 'Another product is registered under this tagId.' },
  item_taken: { field: 'serialNumber', message: 'Another product is registered under this GTIN and serial number.' },
}

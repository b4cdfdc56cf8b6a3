/**
 * The catalogue of the demonstration: its products on the local chain and their tags in the store. Each step has an idempotency key, so
 * that another start, also after a crash, only makes what is missing and undoes nothing that was done since.
 */
import { fileURLToPath } from 'node:url'
import type { Hex } from '@touchstone/verdict'
import { decodeFunctionResult, encodeFunctionData, keccak256, stringToHex } from 'viem/utils'
import { assetRegistryAbi as abi } from '../../domain/registry-abi.ts'
import { publishedAccounts } from '../../domain/published-accounts.ts'
import { registryTypedData } from '../../chain/transactions/typed-data.ts'
import type { WriteRequest } from '../../chain/transactions/calls.ts'
import type { Writer } from '../../chain/transactions/writer.ts'
import { localRpc } from '../../chain/devchain/transact.ts'
import { putDemoDetails, type DetailsStores } from './details.ts'
import { demoBatch, type DemoProduct, demoUid, products } from './products.ts'
import type { Components } from '../../app/components.ts'
import { chainId, zeroHash } from '../../domain/chain.ts'
import { canonicalMetadata } from '../../assets/metadata.ts'

type CatalogueOptions = Readonly<{
  rpcUrl: string
  contract: Hex
  writer: Pick<Writer, 'write' | 'attestClaim'>
  metadata: DetailsStores['metadata']
  pictures: DetailsStores['pictures']
  /** Returns the tag hash of the product at this place of the list, the same at every start. */
  tagHashFor: (index: number) => Hex
  progress: (line: string) => void
}>

/** A product on the chain; `index` is its place in the list. */
export type CatalogueItem = DemoProduct & Readonly<{ index: number; tokenId: bigint }>

export const isBound = ({ state }: DemoProduct): boolean => state !== 'MINTED'

/** Brings every product to its state. Throws an Error of one sentence when a step is refused that was not made before. */
export async function fillCatalogue(options: CatalogueOptions): Promise<CatalogueItem[]> {
  const began = performance.now()
  const { progress } = options
  const work = { ...options, accounts: publishedAccounts(6) }
  const hashes = await Promise.all(products.map((product) => putMetadata(options, product)))
  const items: CatalogueItem[] = []
  let isNew = false
  for (const [from, to] of batches) {
    const batch = await mintBatch(work, hashes, from, to)
    isNew ||= batch.isNew
    for (const [step, product] of products.slice(from, to).entries())
      items.push({ ...product, index: from + step, tokenId: batch.firstId + BigInt(step) })
  }
  if (isNew) progress(`Minted ${products.length} demonstration products; binding tags, activating, claiming, flagging.`)
  await Promise.all(items.map((item) => bringToState(work, item)))
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  progress(`${items.length} demonstration products ${isNew ? `ready after ${seconds} s` : 'found'}.`)
  return items
}

async function putMetadata(stores: DetailsStores, { metadata: text, model }: DemoProduct): Promise<Hex> {
  if (text === null) return zeroHash
  const details = model && (await putDemoDetails(stores, model))
  const canonical = canonicalMetadata(details === undefined ? text : { ...text, details })
  if (!canonical.ok) throw new Error(canonical.message)
  await stores.metadata.put(canonical)
  return canonical.hash
}

type Work = CatalogueOptions & Readonly<{ accounts: ReturnType<typeof publishedAccounts> }>

/** Ranges of the products that are minted together. The chain of an earlier version has the first ones only. */
const batches: readonly (readonly [from: number, to: number])[] = [
  [0, 14],
  [14, products.length],
]

/** Mints products with consecutive ids. When the store was lost, they are found by a tag that one of them carries. */
async function mintBatch(
  options: Work,
  metadataHashes: readonly Hex[],
  from: number,
  to: number,
): Promise<{ firstId: bigint; isNew: boolean }> {
  const bound = products.findIndex((product, index) => index >= from && isBound(product))
  const known = await tokenOfTag(options, options.tagHashFor(bound))
  if (known !== 0n) return { firstId: known - BigInt(bound - from), isNew: false }
  const [issuer] = options.accounts
  if (issuer === undefined) throw notMade('mintBatch', 'there is no issuer')
  const request = { kind: 'mintBatch', to: issuer.address, metadataHashes: metadataHashes.slice(from, to) } as const
  const result = await options.writer.write(request, { idempotencyKey: `catalogue-1-mint${from === 0 ? '' : from}` })
  if (!result.ok || result.status !== 'CONFIRMED')
    throw notMade('mintBatch', result.ok ? 'it was not mined in time' : result.message)
  const [firstId] = result.tokenIds
  if (firstId === undefined) throw notMade('mintBatch', 'nothing was minted')
  return { firstId, isNew: true }
}

async function bringToState(options: Work, item: CatalogueItem): Promise<void> {
  const { index, tokenId, state, consumer, flag, recycled } = item
  const step = (request: WriteRequest) => make(options, request, `catalogue-1-${index}-${request.kind}`)
  if (state === 'MINTED') return
  await step({ kind: 'bindTag', tokenId, tagHash: options.tagHashFor(index) })
  if (state !== 'BOUND') await step({ kind: 'activate', tokenId })
  if (state === 'CLAIMED') await step(await claimBy(options, consumer ?? 0, tokenId))
  if (flag !== undefined)
    await step({ kind: 'flag', tokenId, bits: flag.bits, reasonHash: keccak256(stringToHex(flag.reason)) })
  if (recycled) await step({ kind: 'recycle', tokenId })
}

/** Codes of the contract or the store for a step that was made before. */
const madeBefore: ReadonlySet<string> = new Set(['WRONG_STATE', 'FLAGS_ALREADY_SET', 'IDEMPOTENCY_CONFLICT'])

async function make({ writer }: CatalogueOptions, request: WriteRequest, idempotencyKey: string): Promise<void> {
  let result = await writer.write(request, { idempotencyKey })
  // The same key waits for the same transaction and sends it again when it was lost.
  for (let again = 0; again < 3 && result.ok && result.status === 'PENDING'; again += 1)
    result = await writer.write(request, { idempotencyKey })
  if (result.ok && result.status === 'CONFIRMED') return
  if (!result.ok && madeBefore.has(result.code)) return
  throw notMade(request.kind, result.ok ? 'it was not mined in time' : result.message)
}

/** Makes a claim as after a tap. It has the attestation and the consent of a demo consumer (anvil's accounts 2 to 5). */
async function claimBy({ writer, contract, accounts }: Work, consumer: number, tokenId: bigint): Promise<WriteRequest> {
  const account = accounts[consumer + 2]
  if (account === undefined) throw notMade('claim', 'there is no such consumer')
  const claim = { tokenId, claimant: account.address, tapCounter: 1, deadline: endOfCentury }
  const attestation = await writer.attestClaim({ ...claim, tagHash: undefined })
  if (!attestation.ok) throw notMade('claim', attestation.message)
  const { nonce, attester, attesterSignature } = attestation
  const consent = { tokenId, claimant: account.address, nonce, deadline: endOfCentury }
  const claimantSignature = await account.signTypedData(
    registryTypedData({ chainId, contract }, 'ClaimConsent', consent),
  )
  return { kind: 'claim', ...claim, attester, attesterSignature, claimantSignature }
}

const endOfCentury = 4_102_444_800n

async function tokenOfTag({ rpcUrl, contract }: CatalogueOptions, tagHash: Hex): Promise<bigint> {
  const data = encodeFunctionData({ abi, functionName: 'getTokenByTag', args: [tagHash] })
  const result = await localRpc(rpcUrl)('eth_call', [{ to: contract, data }, 'latest'])
  return decodeFunctionResult({ abi, functionName: 'getTokenByTag', data: result as Hex })
}

function notMade(step: string, why: string): Error {
  return new Error(`The demonstration's products could not be made (${step}): ${why}`)
}

/** A product of the demonstration. `uid` is of its software tag; null without one. */
export type DemoItem = Pick<CatalogueItem, 'tokenId' | 'gtin' | 'serial'> &
  Readonly<{ state: string; name: string; uid: Uint8Array | null }>

export const demoThemes = fileURLToPath(new URL('themes', import.meta.url))

type DemoOptions = Pick<CatalogueOptions, 'rpcUrl' | 'progress'> & Readonly<{ components: Components }>

/** Mints, binds and registers what is missing. A second start changes nothing. */
export async function openDemoCatalogue({ components, rpcUrl, progress }: DemoOptions): Promise<DemoItem[]> {
  const { tagKeys, tagHash, items: named, tags, verdicts, contract } = components
  if (tagHash === undefined) throw new Error('The demonstration needs TAG_PEPPER.')
  if (tagKeys.record(demoBatch) === undefined) {
    const created = await tagKeys.create({ id: demoBatch, demo: true })
    if (!created.ok) throw new Error(created.error)
  }
  const items = await fillCatalogue({
    ...components,
    rpcUrl,
    contract: contract.toLowerCase() as Hex,
    tagHashFor: (index) => tagHash(demoUid(index)),
    progress,
  })
  return Promise.all(
    items.map(async (item) => {
      const { index, tokenId, gtin, serial } = item
      const uid = isBound(item) ? demoUid(index) : null
      await named.register({ tokenId, gtin, serial })
      if (uid !== null) await tags.importTag({ uid, epoch: 0, batchId: demoBatch, tokenId })
      const { state = 'NONE', untrusted } = (await verdicts.answer(tokenId))?.verdict ?? {}
      return { tokenId, state, name: untrusted?.name ?? '(no metadata)', gtin, serial, uid }
    }),
  )
}

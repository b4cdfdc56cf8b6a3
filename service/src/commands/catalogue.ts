/**
 * Fills the local chain with the demonstration's products, once: each step has an idempotency key, so that a second start,
 * or one after a crash in the middle, only makes what is missing and undoes nothing that was done since.
 */
import type { Hex } from '@touchstone/verdict'
import { decodeFunctionResult, encodeFunctionData, keccak256, stringToHex, zeroHash } from 'viem'
import { assetRegistryAbi as abi } from '../chain/abi.ts'
import { publishedAccounts } from '../chain/local-chain-accounts.ts'
import { registryTypedData } from '../chain/write-calls-typed-data.ts'
import type { WriteRequest } from '../chain/write-calls.ts'
import type { Writer } from '../chain/writer.ts'
import { createWriterRpc } from '../chain/writer-rpc.ts'
import { products } from './catalogue-products.ts'
import type { Product } from './catalogue-products.ts'

export type CatalogueOptions = Readonly<{
  rpcUrl: string
  contract: Hex
  chainId: number
  writer: Pick<Writer, 'write' | 'attestClaim'>
  /** Keeps the metadata under its hash and returns the hash. */
  metadata: { put: (metadata: Readonly<Record<string, string>>) => Promise<Hex> }
  /** The tag commitment of the product at this place of the list; the same at every start. */
  tagHashFor: (index: number) => Hex
  progress: (line: string) => void
}>

/** `index` is the one given to `tagHashFor`; `gtin` has 14 digits; `bound` says whether it carries a tag. */
export type CatalogueItem = Readonly<{
  index: number
  tokenId: bigint
  gtin: string
  serial: string
  name: string | null
  bound: boolean
}>

/** Throws an Error of one sentence when a step is refused for another reason than having been made. */
export async function fillCatalogue(options: CatalogueOptions): Promise<CatalogueItem[]> {
  const began = performance.now()
  const { metadata, progress } = options
  const work = { ...options, accounts: publishedAccounts(6) }
  const hashes = await Promise.all(
    products.map(async ({ metadata: described }) => (described === null ? zeroHash : metadata.put(described))),
  )
  const { firstId, isNew } = await minted(work, hashes)
  if (isNew) progress(`Minted ${products.length} demonstration products; binding tags, activating, claiming, flagging.`)
  await Promise.all(products.map((product, index) => bringToState(work, product, index, firstId + BigInt(index))))
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  progress(
    isNew
      ? `${products.length} demonstration products ready after ${seconds} s.`
      : `${products.length} demonstration products found.`,
  )
  return products.map(({ gtin, serial, state, metadata: described }, index) => {
    return {
      index,
      tokenId: firstId + BigInt(index),
      gtin,
      serial,
      name: described?.['name'] ?? null,
      bound: state !== 'MINTED',
    }
  })
}

type Work = CatalogueOptions & Readonly<{ accounts: ReturnType<typeof publishedAccounts> }>

/** The ids are consecutive. Without its store the service finds them again by a tag that one of them carries. */
async function minted(options: Work, metadataHashes: readonly Hex[]): Promise<{ firstId: bigint; isNew: boolean }> {
  const bound = products.findIndex(({ state }) => state !== 'MINTED')
  const known = await tokenOfTag(options, options.tagHashFor(bound))
  if (known !== 0n) return { firstId: known - BigInt(bound), isNew: false }
  const [issuer] = options.accounts
  if (issuer === undefined) throw notMade('mintBatch', 'there is no issuer')
  const request = { kind: 'mintBatch', to: issuer.address, metadataHashes } as const
  const result = await options.writer.write(request, { idempotencyKey: 'catalogue-1-mint' })
  if (!result.ok || result.status !== 'CONFIRMED')
    throw notMade('mintBatch', result.ok ? 'it was not mined in time' : result.message)
  const [firstId] = result.tokenIds
  if (firstId === undefined) throw notMade('mintBatch', 'nothing was minted')
  return { firstId, isNew: true }
}

async function bringToState(options: Work, product: Product, index: number, tokenId: bigint): Promise<void> {
  const { state, consumer, flag, recycled } = product
  const step = (request: WriteRequest) => make(options, request, `catalogue-1-${index}-${request.kind}`)
  if (state === 'MINTED') return
  await step({ kind: 'bindTag', tokenId, tagHash: options.tagHashFor(index) })
  if (state !== 'BOUND') await step({ kind: 'activate', tokenId })
  if (state === 'CLAIMED') await step(await claimBy(options, consumer ?? 0, tokenId))
  if (flag !== undefined)
    await step({ kind: 'flag', tokenId, bits: flag.bits, reasonHash: keccak256(stringToHex(flag.reason)) })
  if (recycled) await step({ kind: 'recycle', tokenId })
}

/** Said by the contract, or by the store, when the step was made before. */
const madeBefore: ReadonlySet<string> = new Set(['WRONG_STATE', 'FLAGS_ALREADY_SET', 'IDEMPOTENCY_CONFLICT'])

async function make({ writer }: CatalogueOptions, request: WriteRequest, idempotencyKey: string): Promise<void> {
  let result = await writer.write(request, { idempotencyKey })
  // The same key again waits for the same transaction, and sends its bytes again where they were lost.
  for (let again = 0; again < 3 && result.ok && result.status === 'PENDING'; again += 1)
    result = await writer.write(request, { idempotencyKey })
  if (result.ok && result.status === 'CONFIRMED') return
  if (!result.ok && madeBefore.has(result.code)) return
  throw notMade(request.kind, result.ok ? 'it was not mined in time' : result.message)
}

/** The attester's word, as after a tap, and the consent of one of the demonstration's consumers (anvil's accounts 2 to 5). */
async function claimBy(
  { writer, contract, chainId, accounts }: Work,
  consumer: number,
  tokenId: bigint,
): Promise<WriteRequest> {
  const account = accounts[consumer + 2]
  if (account === undefined) throw notMade('claim', 'there is no such consumer')
  const claim = { tokenId, claimant: account.address, tapCounter: 1, deadline: endOfCentury }
  const attestation = await writer.attestClaim(claim)
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
  const result = (await createWriterRpc({ url: rpcUrl })('eth_call', [{ to: contract, data }, 'latest'])) as Hex
  return decodeFunctionResult({ abi, functionName: 'getTokenByTag', data: result })
}

function notMade(step: string, why: string): Error {
  return new Error(`The demonstration's products could not be made (${step}): ${why}`)
}

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assetFlags, type Hex, lifecycleStates, recordOfWord } from '@touchstone/verdict'
import { decodeFunctionResult, encodeFunctionData, keccak256, stringToHex, zeroHash } from 'viem'
import { openEmptyPglite } from '../../../test/support/database/pglite.ts'
import { testFolder } from '../../../test/support/folder.ts'
import { parseDetails, pictureHashes } from '../../domain/product-details.ts'
import { assetRegistryAbi as abi } from '../../domain/registry-abi.ts'
import { publishedAccounts } from '../../domain/published-accounts.ts'
import { type LocalChain, startLocalChain } from '../../chain/devchain/devchain.ts'
import { deployLocal } from '../../chain/devchain/deploy.ts'
import { createWriter } from '../../chain/transactions/writer.ts'
import { createRpcClient } from '../../chain/rpc/client.ts'
import { createLog } from '../../lib/log.ts'
import type { Database } from '../../db/database.ts'
import { metadataStore } from '../../assets/metadata-store.ts'
import { pictureStore } from '../../assets/pictures/store.ts'
import { migrate } from '../../db/migrate.ts'
import { operationStore } from '../../chain/transactions/operations.ts'
import { products } from './products.ts'
import { type CatalogueItem, fillCatalogue, isBound } from './catalogue.ts'

const { LOST, STOLEN, RECALL, STOLEN_CONFIRMED, INVESTIGATION, TAMPER } = assetFlags
const tagHashFor = (index: number) => keccak256(stringToHex(`tag ${index}`))

describe('the demonstration catalogue', () => {
  const log = createLog(() => {})
  const dataDir = testFolder()
  let chain: LocalChain
  let contract: Hex
  let database: Database
  let items: CatalogueItem[]
  let snapshot: unknown
  const lines: string[] = []
  before(async () => {
    chain = await startLocalChain({ dataDir, log })
    contract = (await deployLocal({ rpcUrl: chain.url })).contract
    database = await openEmptyPglite()
    await migrate(database)
    snapshot = await createRpcClient(chain)('evm_snapshot')
    items = await fill(database)
  })
  after(async () => {
    await chain.close()
    await database.close()
  })

  function openWriter(into: Database) {
    const [operator, attester] = publishedAccounts(2) as [Account, Account]
    const roles = ['issuer', 'binder', 'qa', 'guardian', 'recycler', 'relayer'] as const
    const keys = { ...Object.fromEntries(roles.map((role) => [role, operator])), attester }
    const operations = operationStore(into)
    return createWriter({
      rpc: createRpcClient({ url: chain.url }),
      contract,
      chainId: 84532,
      keys,
      operations,
      log,
      local: true,
    })
  }

  async function fill(into: Database): Promise<CatalogueItem[]> {
    const writer = openWriter(into)
    const made = await fillCatalogue({
      rpcUrl: chain.url,
      contract,
      writer,
      metadata: metadataStore(into),
      pictures: pictureStore(into),
      tagHashFor,
      progress: (line) => lines.push(line),
    })
    await writer.close()
    return made
  }

  async function read(functionName: 'getAssets' | 'metadataHash' | 'getTokenByTag', ...args: unknown[]) {
    const data = encodeFunctionData({ abi, functionName, args } as never)
    const result = (await createRpcClient(chain)('eth_call', [{ to: contract, data }, 'latest'])) as Hex
    return decodeFunctionResult({ abi, functionName, data: result } as never) as unknown
  }
  const head = () => createRpcClient(chain)('eth_blockNumber')

  async function records() {
    const words = (await read(
      'getAssets',
      items.map(({ tokenId }) => tokenId),
    )) as readonly bigint[]
    return words.map((word) => {
      const record = recordOfWord(word)
      assert.ok(record !== null)
      return { state: lifecycleStates[record.state], flags: record.flags, owner: record.owner }
    })
  }

  it('is the first sixteen tokens of its chain', () => {
    assert.equal(items.length, 16)
    assert.deepEqual(
      items.map(({ tokenId }) => tokenId),
      Array.from({ length: 16 }, (_, n) => BigInt(n + 1)),
    )
  })

  it('has every state and every kind of flag', async () => {
    const found = await records()
    assert.deepEqual(new Set(found.map(({ state }) => state)), new Set(lifecycleStates.slice(1)))
    const flags = found.filter(({ state }) => state === 'FLAGGED').map((record) => record.flags)
    assert.deepEqual(flags, [LOST, STOLEN, RECALL, STOLEN | STOLEN_CONFIRMED, INVESTIGATION])
    assert.deepEqual(
      found.filter((record) => record.flags === TAMPER).map(({ state }) => state),
      ['ACTIVATED'],
    )
    const consumers = new Set(found.map(({ owner }) => owner))
    assert.equal(consumers.size, 5, 'the issuer and four consumers')
  })

  it('carries tags, except where nothing is bound yet, and metadata, except once', async () => {
    for (const { index, tokenId, ...product } of items) {
      const bound = isBound(product)
      assert.equal(await read('getTokenByTag', tagHashFor(index)), bound ? tokenId : 0n)
      const hash = (await read('metadataHash', tokenId)) as Hex
      assert.equal(hash === zeroHash, products[index]?.metadata === null)
      const described = hash === zeroHash ? undefined : await metadataIn(database, hash)
      const { details, ...text } = JSON.parse(described ?? '{}') as { details?: Hex }
      assert.deepEqual(described === undefined ? null : text, products[index]?.metadata)
      assert.equal(details !== undefined, products[index]?.model !== undefined)
      const document = details === undefined ? {} : parseDetails((await metadataIn(database, details)) ?? '')
      const pictures = pictureHashes(document ?? {})
      assert.deepEqual(await pictureStore(database).known(pictures), new Set(pictures))
      assert.equal(pictures.length > 10, details !== undefined)
    }
    assert.equal(items.filter((item) => !isBound(item)).length, 1)
    assert.equal(items.filter(({ metadata }) => metadata === null).length, 1)
  })

  it('holds an attack on every page and model that shows it: escapes, bidi overrides, TAG letters, script, orders to a model', () => {
    const hostile = products.flatMap(({ metadata }) => Object.values(metadata ?? {})).join('\n')
    for (const attack of [
      '\u001b[',
      /\u202e/u,
      /[\u{e0000}-\u{e007f}]/u,
      /<script>/u,
      /Ignore all previous instructions/u,
      /javascript:/u,
    ]) {
      assert.ok(typeof attack === 'string' ? hostile.includes(attack) : attack.test(hostile), String(attack))
    }
  })

  it('uses GTINs of the example range with right check digits, and different serial numbers', () => {
    for (const { gtin } of items) {
      assert.match(gtin, /^0952\d{10}$/)
      const sum = Array.from(gtin).reduce((total, digit, place) => total + Number(digit) * (place % 2 === 0 ? 3 : 1), 0)
      assert.equal(sum % 10, 0, gtin)
    }
    assert.equal(new Set(items.map(({ gtin, serial }) => `${gtin} ${serial}`)).size, items.length)
  })

  it('is found again at the next start, and what was done since stays', async () => {
    const writer = openWriter(database)
    const recalled = items[7]?.tokenId ?? 0n
    await writer.write(
      { kind: 'resolve', tokenId: recalled, bits: RECALL, reasonHash: zeroHash },
      { idempotencyKey: 'resolved' },
    )
    const [before, records_] = [await head(), await records()]
    assert.deepEqual(await fill(database), items)
    assert.deepEqual([await head(), await records()], [before, records_])
    assert.equal(lines.at(-1), '16 demonstration products found.')
  })

  it('is found again by a service that lost its store, which gets the metadata back', async () => {
    const empty = await openEmptyPglite()
    await migrate(empty)
    assert.deepEqual(await fill(empty), items)
    const hash = (await read('metadataHash', 1n)) as Hex
    assert.match((await metadataIn(empty, hash)) ?? '', /Harrow 38/)
    await empty.close()
  })

  it('adds the products of a later version behind those that the operator has minted since', async () => {
    await createRpcClient(chain)('evm_revert', [snapshot])
    const empty = await openEmptyPglite()
    await migrate(empty)
    const writer = openWriter(empty)
    const to = publishedAccounts(1)[0]?.address ?? '0x'
    const first = products.findIndex(isBound)
    for (const [idempotencyKey, request] of [
      ['earlier', { kind: 'mintBatch', to, metadataHashes: Array<Hex>(14).fill(zeroHash) }],
      ['tag', { kind: 'bindTag', tokenId: BigInt(first + 1), tagHash: tagHashFor(first) }],
      ['own', { kind: 'mintBatch', to, metadataHashes: [zeroHash] }],
    ] as const)
      assert.ok((await writer.write(request, { idempotencyKey })).ok)
    await writer.close()
    const found = (await fill(empty)).map(({ tokenId }) => tokenId)
    assert.deepEqual([found[0], found[13], found[14], found[15]], [1n, 14n, 16n, 17n])
    assert.equal(recordOfWord(((await read('getAssets', [15n])) as bigint[])[0] ?? 0n)?.state, 1)
    await empty.close()
  })
})

async function metadataIn(database: Database, hash: Hex): Promise<string | undefined> {
  return (await metadataStore(database).getMany([hash])).get(hash)
}

type Account = ReturnType<typeof publishedAccounts>[number]

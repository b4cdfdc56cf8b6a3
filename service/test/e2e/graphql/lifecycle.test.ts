/** The steps of the lifecycle as mutations (spec §3) with a real chain, real taps and the registry of tags. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { keccak256, stringToHex } from 'viem'
import { createTransferReads } from '../../../src/chain/transactions/transfer-reads.ts'
import { createLog } from '../../../src/lib/log.ts'
import { operationStore } from '../../../src/chain/transactions/operations.ts'
import type { BatchRecord } from '../../../src/tap/keys/batch.ts'
import { askerOf, awaitIndexed, storesOf, type Ask, type Payload } from '../../support/graphql/mutations.ts'
import { newUid, testTag } from '../../support/tap/tags.ts'
import { startWorld, type World } from '../../support/world.ts'
import { refusalOf } from '../../support/index/transfers.ts'
import { alice, bob } from '../../support/index/writer-world.ts'

const gtin = '09520001000010'
const uidText = (uid: Uint8Array) => Buffer.from(uid).toString('hex').toUpperCase()

describe('the lifecycle by mutations', () => {
  let world: World
  let batch: BatchRecord
  let ask: Ask
  const items: bigint[] = []
  before(async () => {
    world = await startWorld()
    const created = await world.components.tagKeys.create({ id: 'test', demo: true })
    assert.ok(created.ok)
    batch = created.value
    const { components: parts, contract } = world
    const deps = {
      ...parts,
      ...storesOf(parts.database),
      operations: operationStore(parts.database),
      transfers: createTransferReads({ rpcUrl: world.chainUrl, contract, chainId: 84532 }),
      awaitIndexed,
      itemChanged: async (tokenId: bigint) => void items.push(tokenId),
      log: createLog((line) => world.lines.push(line)),
    }
    ask = askerOf(parts.database, deps, contract)
  })
  after(() => world.end())

  const step = (field: string, input: object, scopes?: readonly string[]) =>
    ask(field, 'txHash product { id }', input, scopes)
  async function is(tokenId: bigint, state: number, flags = 0): Promise<void> {
    const { record } = (await world.components.reader.read(tokenId)).asset
    assert.deepEqual([record.state, record.flags], [state, flags])
  }
  async function done(field: string, input: object): Promise<Payload> {
    const payload = await step(field, input)
    assert.deepEqual([payload.success, payload.errors], [true, []])
    assert.match(String(payload['txHash']), /^0x[0-9a-f]{64}$/)
    return payload
  }

  async function activated() {
    const tokenId = await world.mint({ name: 'A product' })
    const productId = tokenId.toString()
    const tag = await testTag(batch, { uid: newUid() })
    await done('bindTag', { productId, uid: uidText(tag.uid), batchId: 'test' })
    await done('activateProduct', { productId })
    return { tokenId, productId, tag }
  }
  async function consent(input: object, by: typeof alice): Promise<{ signature: Hex; deadline: unknown }> {
    const given = await ask('transferTypedData', 'typedData deadline', input)
    assert.deepEqual(given.errors, [])
    return { signature: await by.signTypedData(given['typedData'] as never), deadline: given['deadline'] }
  }
  async function claimed(by = alice) {
    const item = await activated()
    const { productId, tag } = item
    const claimant = by.address
    const signed = await consent({ action: 'CLAIM', productId, toAddress: claimant }, by)
    const input = { productId, claimant, ...tag.next(), ...signed, idempotencyKey: `claim-${productId}` }
    return { ...item, input, claim: await done('claimProduct', input) }
  }

  it('binds a tag once, registers it here, and explains why another cannot be bound', async () => {
    const tokenId = await world.mint({ name: 'A product' })
    const [productId, uid] = [tokenId.toString(), newUid()]
    const input = { productId, uid: uidText(uid), batchId: 'test', gtin, serialNumber: 'M41-1' }
    await done('bindTag', input)
    await is(tokenId, 2)
    const tag = await world.components.tags.tagOfUid(uid)
    assert.deepEqual([tag?.tokenId, tag?.gtin, tag?.serial], [tokenId, gtin, 'M41-1'])
    assert.deepEqual(items, [tokenId])
    await done('bindTag', input)

    const other = { productId: (await world.mint()).toString(), uid: uidText(newUid()), batchId: 'test' }
    refusalOf(await step('bindTag', { ...other, uid: input.uid }), 'uid', /registered with asset/)
    refusalOf(await step('bindTag', { ...other, batchId: 'none' }), 'batchId', /no batch named none/)
    refusalOf(await step('bindTag', { ...other, gtin, serialNumber: 'M41-1' }), 'serialNumber', /Another tag/)
    refusalOf(await step('bindTag', { ...other, serialNumber: 'M41-1' }), 'gtin', /give the gtin too/)
    refusalOf(await step('bindTag', { ...other, uid: '05' }), 'uid', /14 hex digits/)
    refusalOf(await step('bindTag', { ...other, productId }), 'productId', /is BOUND/)
  })

  it('activates, and under the same key does it once', async () => {
    const tokenId = await world.mint()
    const productId = tokenId.toString()
    refusalOf(await step('activateProduct', { productId }), 'productId', /is MINTED/)
    await done('bindTag', { productId, uid: uidText(newUid()), batchId: 'test' })
    const input = { productId, idempotencyKey: 'activate it' }
    refusalOf(await step('activateProduct', input), 'idempotencyKey', /printable/)
    const once = { productId, idempotencyKey: 'activate-it' }
    assert.equal((await done('activateProduct', once))['txHash'], (await done('activateProduct', once))['txHash'])
    await is(tokenId, 3)
    refusalOf(
      await step('activateProduct', { productId: '1', idempotencyKey: 'activate-it' }),
      'idempotencyKey',
      /another request/,
    )
  })

  it('claims after a tap, with consent, and answers the same again under the same key', async () => {
    const { tokenId, input, claim } = await claimed()
    await is(tokenId, 4)
    assert.equal((await done('claimProduct', input))['txHash'], claim['txHash'])
    const other = { ...input, claimant: bob.address }
    refusalOf(await step('claimProduct', other), 'idempotencyKey', /another request/)
  })

  it('does not use a tap up for a claim that cannot be, nor claim by another tap', async () => {
    const { productId, tag } = await activated()
    const tap = tag.next()
    const claimant = bob.address
    const signed = await consent({ action: 'CLAIM', productId, toAddress: claimant }, bob)
    const input = { productId, claimant, ...tap }
    refusalOf(await step('claimProduct', input), 'signature', /transferTypedData with action CLAIM/)
    refusalOf(
      await step('claimProduct', { ...input, ...signed, claimant: alice.address }),
      'signature',
      /not the claimant/,
    )
    refusalOf(await step('claimProduct', { ...input, ...signed, picc: 'f' }), 'picc', /32 hex digits/)
    const used = await world.components.database.query('select 1 from tap where uid = $1', [tag.uid])
    assert.deepEqual(used, [], 'the tap is still fresh')
    const foreign = (await activated()).tag.next()
    refusalOf(await step('claimProduct', { ...input, ...signed, ...foreign }), 'picc', /not that of product/)
    const forged = { ...input, ...signed, cmac: '0'.repeat(16) }
    refusalOf(await step('claimProduct', forged), 'picc', /did not verify/)
    await done('claimProduct', { ...input, ...signed })
    refusalOf(
      await step('claimProduct', { ...input, ...signed }),
      'productId',
      /is CLAIMED; only a product that is ACTIVATED/,
    )
  })

  it('flags and resolves: one report, several, all', async () => {
    const { tokenId, productId } = await activated()
    await done('flagProduct', { productId, reports: ['LOST', 'RECALL'], note: 'Report 7' })
    await is(tokenId, 5, 0x05)
    refusalOf(await step('flagProduct', { productId, reports: ['LOST'] }), 'reports', /already has/)
    refusalOf(await step('flagProduct', { productId, reports: [] }), 'reports', /at least one/)
    refusalOf(await step('flagProduct', { productId, reports: ['LOST', 'TAMPER'] }), 'reports', /TAMPER alone/)
    await done('resolveProduct', { productId, reports: ['LOST'] })
    await is(tokenId, 5, 0x04)
    const all = { productId, idempotencyKey: 'resolve-all' }
    assert.equal((await done('resolveProduct', all))['txHash'], (await done('resolveProduct', all))['txHash'])
    await is(tokenId, 3)
    refusalOf(await step('resolveProduct', { productId }), 'reports', /has no reports/)
    const [logged] = await world.components.source
      .logsBetween(0n, 10_000n)
      .then((logs) =>
        (logs as readonly { data: string }[]).filter(({ data }) =>
          data.endsWith(keccak256(stringToHex('Report 7')).slice(2)),
        ),
      )
    assert.ok(logged !== undefined, 'the hash of the note is on chain')
  })

  it('recycles by the operator, and what is claimed by its owner’s signature only', async () => {
    const own = await activated()
    await done('recycleProduct', { productId: own.productId })
    await is(own.tokenId, 6)
    const { tokenId, productId } = await claimed()
    refusalOf(await step('recycleProduct', { productId }), 'signature', /action RECYCLE/)
    const wrong = await consent({ action: 'RECYCLE', productId }, bob)
    refusalOf(await step('recycleProduct', { productId, ...wrong }), 'signature', /not the owner/)
    const input = { productId, ...(await consent({ action: 'RECYCLE', productId }, alice)), idempotencyKey: 'end' }
    assert.equal((await done('recycleProduct', input))['txHash'], (await done('recycleProduct', input))['txHash'])
    await is(tokenId, 6)
    refusalOf(
      await ask('transferTypedData', 'typedData', { productId, toAddress: bob.address }),
      'productId',
      /is recycled/,
    )
  })

  const fields = ['bindTag', 'activateProduct', 'claimProduct', 'flagProduct', 'resolveProduct', 'recycleProduct']
  for (const field of [...fields, 'initiateTransfer', 'acceptTransfer', 'cancelTransfer']) {
    it(`${field} needs the scope write`, async () => {
      const inputs: Readonly<Record<string, object>> = {
        bindTag: { uid: '04', batchId: 'test' },
        claimProduct: { claimant: alice.address, picc: '', cmac: '' },
        flagProduct: { reports: ['LOST'] },
        initiateTransfer: { toAddress: bob.address },
      }
      const about =
        field.endsWith('ptTransfer') || field === 'cancelTransfer' ? { transferId: '1-1' } : { productId: '1' }
      const selection = field.endsWith('Transfer') ? 'transfer { id }' : 'product { id }'
      await assert.rejects(ask(field, selection, { ...about, ...inputs[field] }, ['read']), { code: 'FORBIDDEN' })
    })
  }
})

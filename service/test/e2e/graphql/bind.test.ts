/** The mutation bindTag, repeated, changes no registration of a tag (spec §3, §4.9); transferTypedData takes the ids of its action only. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { readAudit } from '../../../src/db/audit.ts'
import type { BatchRecord } from '../../../src/tap/keys/batch.ts'
import { askerIn, type Ask } from '../../support/graphql/mutations.ts'
import { refusalOf } from '../../support/index/transfers.ts'
import { assertionsOf, commandsOf } from '../../support/processes/cli.ts'
import { bindTagTo, demoBatchOf } from '../../support/tap/bound.ts'
import { newUid, testTag } from '../../support/tap/tags.ts'
import { startWorld, type World } from '../../support/world.ts'

let world: World
let batch: BatchRecord
let ask: Ask
const items: bigint[] = []
before(async () => {
  world = await startWorld()
  batch = await demoBatchOf(world)
  ask = askerIn(world, { itemChanged: async (tokenId) => void items.push(tokenId) })
  const { tags } = world.components
  await tags.putBatch({ id: 'newer', epoch: 1, settings: {} })
  await tags.putBatch({ id: 'beside', epoch: 0, settings: {} })
})
after(() => world.end())

const gtin = '09520001000010'
let serials = 0
const uidText = (uid: Uint8Array) => Buffer.from(uid).toString('hex').toUpperCase()
const indexed = async () =>
  world.components.indexer.until(BigInt((await world.rpc('eth_blockNumber', [])) as string), 20_000)
const bind = (input: object, key?: Parameters<Ask>[3]) => ask('bindTag', 'txHash', input, key)

/** A product that is bound with an item. `registered` is what the registry has of its tag. */
async function bound(given: object = {}) {
  const tokenId = await world.mint({ name: 'A product', brand: 'Acme' })
  const tag = await testTag(batch, { uid: newUid() })
  const item = { gtin, serialNumber: `S-${(serials += 1)}` }
  const input = { productId: String(tokenId), uid: uidText(tag.uid), batchId: 'test', ...item, ...given }
  const first = await bind(input)
  assert.deepEqual([first.success, first.errors], [true, []])
  const registered = () => world.components.tags.tagOfUid(tag.uid)
  return { tokenId, tag, input, txHash: first['txHash'], registered }
}

/** Takes the rows of a tag away: so a process leaves them that ended between the transaction and the registration. */
async function forget(uid: Uint8Array, tokenId: bigint): Promise<void> {
  const { database } = world.components
  await database.query('delete from tag where uid = $1', [uid])
  for (const table of ['tag_of_token', 'item', 'token_of_item'])
    await database.query(`delete from ${table} where token_id = $1::numeric`, [String(tokenId)])
}

const entries = async () => (await readAudit(world.components.database, 0n, 10_000)).map(({ body }) => JSON.parse(body))

describe('bindTag', () => {
  it('binds a tag once, registers it here, and explains why another cannot be bound', async () => {
    const tokenId = await world.mint({ name: 'A product' })
    const [productId, uid] = [tokenId.toString(), newUid()]
    const input = { productId, uid: uidText(uid), batchId: 'test', gtin, serialNumber: 'M41-1' }
    assert.deepEqual((await bind(input)).errors, [])
    assert.equal((await world.components.reader.read(tokenId)).asset.record.state, 2)
    const tag = await world.components.tags.tagOfUid(uid)
    assert.deepEqual([tag?.tokenId, tag?.gtin, tag?.serial], [tokenId, gtin, 'M41-1'])
    assert.deepEqual(items, [tokenId])
    assert.equal((await bind(input)).success, true)

    const other = { productId: (await world.mint()).toString(), uid: uidText(newUid()), batchId: 'test' }
    refusalOf(await bind({ ...other, uid: input.uid }), 'uid', /registered with asset/)
    refusalOf(await bind({ ...other, batchId: 'none' }), 'batchId', /no batch named none/)
    for (const batchId of ['', 'a\0', 'x'.repeat(65)])
      refusalOf(await bind({ ...other, batchId }), 'batchId', /^A batch id has 1 to 64 of A-Z/)
    refusalOf(await bind({ ...other, gtin, serialNumber: 'M41-1' }), 'serialNumber', /Another tag/)
    refusalOf(await bind({ ...other, serialNumber: 'M41-1' }), 'gtin', /give the gtin too/)
    refusalOf(await bind({ ...other, uid: '05' }), 'uid', /14 hex digits/)
    refusalOf(await bind({ ...other, productId }), 'productId', /is BOUND/)
  })

  it('binds no chip of a batch of other brands by a key with brands, which does not learn whether there is such a batch', async () => {
    const productId = String(await world.mint({ name: 'A product', brand: 'Acme' }))
    await indexed()
    const tags = world.components.tags
    await tags.putBatch({ id: 'of-others', epoch: 0, settings: {} })
    await tags.setBatchBrands('of-others', ['Other'])
    const input = { productId, uid: uidText(newUid()), batchId: 'of-others' }
    const refused = async (batchId: string) =>
      refusalOf(
        await bind({ ...input, batchId }, { brands: ['Acme'] }),
        'batchId',
        new RegExp(`^No batch named ${batchId} is open to the brands of this key`),
      )
    await refused('of-others')
    await refused('none')
    await tags.setBatchStatus('of-others', 'revoked')
    await refused('of-others')
    await tags.setBatchStatus('of-others', 'active')
    await tags.setBatchBrands('of-others', ['Other', 'Acme'])
    assert.deepEqual((await bind(input, { brands: ['Acme'] })).errors, [])
  })
})

describe('bindTag again', () => {
  for (const [name, keyed] of [
    ['under an idempotency key', { idempotencyKey: 'once' }],
    ['without one', {}],
  ] as const)
    it(`changes nothing with the same values, and refuses others, ${name}`, async () => {
      const { tokenId, tag, input, txHash, registered } = await bound(
        'idempotencyKey' in keyed ? { idempotencyKey: `once-${serials}` } : {},
      )
      const before = await registered()
      const count = (await entries()).length
      assert.deepEqual(await bind(input), { success: true, errors: [], txHash })
      const added = (await entries()).slice(count)
      assert.deepEqual(
        added.map(({ act, outcome }) => [act, outcome]),
        [['bindTag', 'REPLAYED']],
      )

      refusalOf(await bind({ ...input, batchId: 'newer' }), 'batchId', /registered with asset \d+ in batch test\./)
      refusalOf(await bind({ ...input, batchId: 'beside' }), 'batchId', /in batch test\./)
      refusalOf(await bind({ ...input, serialNumber: 'other' }), 'serialNumber', /as the item 09520001000010 S-\d+\./)
      refusalOf(await bind({ ...input, gtin: null, serialNumber: null }), 'idempotencyKey', /used for another request/)
      const ofAcme = { brands: ['Acme'] }
      await indexed()
      for (const batchId of ['newer', 'none'])
        refusalOf(await bind({ ...input, batchId }, ofAcme), 'batchId', /in batch test\./)
      assert.deepEqual(await registered(), before)

      await world.write({ kind: 'activate', tokenId })
      refusalOf(await bind({ ...input, batchId: 'newer' }), 'batchId', /in batch test\./)
      assert.deepEqual(await bind(input), { success: true, errors: [], txHash })
      const tap = tag.next()
      const verdict = (await (await world.get(`/api/verify?picc=${tap.picc}&cmac=${tap.cmac}`)).json()) as object
      assert.equal('verified' in verdict && verdict.verified, true)
    })

  it('leaves what the operator has corrected', async () => {
    const { tag, tokenId, input, registered } = await bound()
    const row = { uid: tag.uid, epoch: 0, batchId: 'test', tokenId, gtin, serial: 'corrected' }
    await world.components.tags.importTag(row)
    refusalOf(await bind(input), 'serialNumber', /as the item 09520001000010 corrected\./)
    assert.equal((await registered())?.serial, 'corrected')
  })

  it('registers what a process left that ended between, with the values of the first request only', async () => {
    const { tag, tokenId, input, txHash, registered } = await bound()
    const before = await registered()
    await forget(tag.uid, tokenId)
    refusalOf(await bind({ ...input, batchId: 'newer' }), 'idempotencyKey', /used for another request/)
    refusalOf(await bind({ ...input, serialNumber: 'other' }), 'idempotencyKey', /used for another request/)
    assert.equal(await registered(), undefined)
    assert.deepEqual(await bind(input), { success: true, errors: [], txHash })
    assert.deepEqual(await registered(), before)
  })

  it('registers no tag of a product that went on meanwhile: that is the operator’s', async () => {
    const { tag, tokenId, input, txHash, registered } = await bound()
    await forget(tag.uid, tokenId)
    await world.write({ kind: 'activate', tokenId })
    const late = await bind(input)
    refusalOf(late, 'uid', /Product \d+ is ACTIVATED: .* touchstone tag import$/)
    assert.equal(late['txHash'], txHash)
    assert.equal(await registered(), undefined)
  })

  it('moves no chip to another batch that is registered without a product', async () => {
    const [tokenId, uid] = [await world.mint(), newUid()]
    await world.components.tags.importTag({ uid, epoch: 0, batchId: 'test' })
    const input = { productId: String(tokenId), uid: uidText(uid), batchId: 'newer' }
    refusalOf(await bind(input), 'uid', /registered in batch test\./)
    refusalOf(await bind(input, { brands: ['Acme'] }), 'productId', /does not exist/)
    assert.deepEqual((await bind({ ...input, batchId: 'test' })).errors, [])
    assert.equal((await world.components.tags.tagOfUid(uid))?.tokenId, tokenId)
  })

  it('names no product of another brand that has the tag on chain only', async () => {
    const uid = newUid()
    const { tokenId: foreign } = await bindTagTo(world, uid, { name: 'F', brand: 'Bolt' })
    const tokenId = await world.mint({ name: 'A', brand: 'Acme' })
    await indexed()
    const input = { productId: String(tokenId), uid: uidText(uid), batchId: 'test' }
    refusalOf(await bind(input, { brands: ['Acme'] }), 'uid', /^The tag or the item is registered already/)
    refusalOf(await bind(input), 'uid', new RegExp(`bound to asset ${foreign};`))
  })

  it('knows a binding from before the upgrade, and registers it while the product is BOUND', async () => {
    const uid = newUid()
    const tokenId = await world.mint()
    const tagHash = world.components.tagHash?.(uid) ?? assert.fail()
    const idempotencyKey = `bind:${tokenId}:${tagHash}`
    await world.components.writer.write({ kind: 'bindTag', tokenId, tagHash }, { idempotencyKey })
    const input = { productId: String(tokenId), uid: uidText(uid), batchId: 'test' }
    assert.deepEqual((await bind(input)).errors, [])
    refusalOf(await bind({ ...input, batchId: 'newer' }), 'batchId', /in batch test\./)
    await forget(uid, tokenId)
    await world.write({ kind: 'activate', tokenId })
    refusalOf(await bind({ ...input, batchId: 'newer' }), 'uid', /is ACTIVATED/)
    assert.equal(await world.components.tags.tagOfUid(uid), undefined)
  })

  it('notes in the audit trail what it registers, and in place of what', async () => {
    const { tokenId } = await bound()
    const entry = (await entries()).findLast(({ act }) => act === 'tag.register')
    const item = { gtin, serial: `S-${serials}` }
    assert.deepEqual(entry, {
      who: 'key:testtest',
      requestId: 'request',
      act: 'tag.register',
      subject: String(tokenId),
      outcome: 'DONE',
      before: {},
      after: { batch: 'test', epoch: 0, ...item },
    })
  })
})

describe('touchstone asset bind again', () => {
  it('keeps to the values of the first command under its key', async () => {
    const { ok, refused } = assertionsOf(commandsOf(world))
    const [tokenId, uid] = [await world.mint(), newUid()]
    const command = (...more: string[]) =>
      ['asset', 'bind', String(tokenId), '--uid', uidText(uid), '--key', 'bind-it', '--batch', ...more] as const
    await ok(...command('test'))
    assert.match(await ok(...command('test')), /done before under this key/)
    assert.match(await refused(...command('newer')), /in batch test\./)
    await forget(uid, tokenId)
    assert.match(await refused(...command('newer')), /used for another request/)
    assert.match(await ok(...command('test')), /done before under this key/)
    assert.equal((await world.components.tags.tagOfUid(uid))?.tokenId, tokenId)
    const entry = (await entries()).findLast(({ act }) => act === 'tag.register')
    assert.match(entry.who, /^local:/)
  })
})

describe('transferTypedData', () => {
  it('refuses an id that its action does not read', async () => {
    const productId = String(await world.mint())
    const typedData = (input: object) => ask('transferTypedData', 'nonce', input)
    for (const transferId of [`${productId}-1`, 'x', ''])
      refusalOf(await typedData({ action: 'INVALIDATE', productId, transferId }), 'transferId', /leave transferId out/)
    const answer = { action: 'ACCEPT', transferId: `${productId}-1`, productId }
    refusalOf(await typedData(answer), 'productId', /leave productId out/)
    assert.ok((await typedData({ action: 'INVALIDATE', productId, transferId: null })).success)
  })
})

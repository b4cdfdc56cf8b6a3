/** registerProduct (spec §4.9) against a real chain and database: rejections, and one mint per key. */
import { createRpcClient, type RpcClient } from '../../../src/chain/rpc/client.ts'
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type AuditBody, readAudit } from '../../../src/db/audit.ts'
import type { ApiKey } from '../../../src/access/api-keys.ts'
import { detailsHashOf } from '../../../src/domain/product-details.ts'
import { fieldsOf, startMutationWorld, type Payload } from '../../support/graphql/mutations.ts'
import { operator } from '../../support/index/writer-world.ts'
import { useOpened } from '../../support/opened.ts'

const gtin = '09506000134352'
const selection = `txHash productId product {
  id tagId name brand serialNumber gtin state verified createdAt currentOwner { address } transfers { id }
  metadata { description imageUrl manufactureDate origin customFields } }`

describe('registerProduct', () => {
  const world = useOpened(startMutationWorld)

  const register = (input: object, key?: Partial<ApiKey>) => world.ask('registerProduct', selection, input, key)
  const productOf = ({ product }: Payload) => product as Record<string, unknown>
  const registrations = async () => (await world.database.query('select 1 from registration')).length

  it('mints a product and shows it before it is indexed', async () => {
    const metadata = {
      description: 'Hand-wound.\nOlive strap.',
      imageUrl: 'https://example.com/a.jpg',
      manufactureDate: '2026-03-01',
      origin: 'CH',
      customFields: { care: { washable: false, degrees: [30, 40.5] }, lot: null },
    }
    const input = { tagId: 'tag-1', name: 'Field Watch', brand: 'Calder', serialNumber: 'H38-1', gtin, metadata }
    const made = await register(input)
    assert.deepEqual([made.success, made.errors], [true, []])
    assert.match(String(made['txHash']), /^0x[0-9a-f]{64}$/)
    const { createdAt, id, ...product } = productOf(made)
    assert.match(String(id), /^\d{15}$/)
    assert.equal(made['productId'], id)
    assert.deepEqual(product, {
      tagId: 'tag-1',
      name: 'Field Watch',
      brand: 'Calder',
      serialNumber: 'H38-1',
      gtin,
      state: 'MINTED',
      verified: false,
      currentOwner: { address: operator.address },
      transfers: [],
      metadata,
    })
    assert.match(String(createdAt), /^\d{4}-\d\d-\d\dT/)
  })

  it('gives the same product again under the same key, and mints nothing more', async () => {
    const input = { tagId: 'tag-2', name: 'Coat', idempotencyKey: 'coat' }
    const supply = await world.supply()
    const both = await Promise.all([register(input), register(input)])
    both.push(await register(input))
    assert.equal(await world.supply(), supply + 1)
    assert.equal(new Set(both.map((made) => `${String(productOf(made)['id'])} ${String(made['txHash'])}`)).size, 1)
    const [product] = both.map((made) => String(made['productId']))
    const trail = (await readAudit(world.database, 0n, 1_000)).map(({ seq, body }) => ({
      seq,
      ...(JSON.parse(body) as AuditBody),
    }))
    const own = trail.filter(({ subject }) => subject === product)
    const first = own.find(({ outcome }) => outcome === 'SIGNED')
    assert.deepEqual(own.map(({ outcome }) => outcome).toSorted(), ['CONFIRMED', 'REPLAYED', 'REPLAYED', 'SIGNED'])
    assert.deepEqual([first?.who, first?.requestId, first?.txHash], ['key:testtest', 'request', both[0]?.['txHash']])
    for (const { outcome, who, of, first: firstActor } of own.filter((entry) => entry.outcome !== 'SIGNED')) {
      assert.equal(of, String(first?.seq))
      if (outcome === 'REPLAYED') assert.deepEqual([who, firstActor], ['key:testtest', 'key:testtest'])
    }
  })

  it('keeps idempotency keys apart: the same one of another API key is another registration', async () => {
    const other = { id: 'othertst' }
    const [first, second] = [
      await register({ tagId: 'apart-1', name: 'Bag', idempotencyKey: 'o1' }),
      await register({ tagId: 'apart-2', name: 'Bag', idempotencyKey: 'o1' }, other),
    ]
    assert.deepEqual([first.success, second.success], [true, true])
    assert.notEqual(first['productId'], second['productId'])
    // The second key neither sees nor repeats the registration of the first.
    const taken = await register({ tagId: 'apart-1', name: 'Bag', idempotencyKey: 'o2' }, other)
    assert.deepEqual([fieldsOf(taken), taken['product']], [['tagId'], null])
  })

  it('answers a request of an earlier version, whose rows name no API key, with its product', async () => {
    const input = { tagId: 'former', name: 'Scarf', idempotencyKey: 'former-1' }
    const made = await register(input)
    await world.database.query(
      `update registration set idempotency_key = 'former-1' where idempotency_key like '% former-1'`,
    )
    await world.database.query(
      `update operation set idempotency_key = 'register:former-1' where idempotency_key like 'register:% former-1'`,
    )
    const supply = await world.supply()
    assert.equal((await register(input))['productId'], made['productId'])
    assert.equal(await world.supply(), supply)
  })

  it('gives the same product after the issuer’s account was replaced', async () => {
    const input = { tagId: 'replaced', name: 'Belt', idempotencyKey: 'replaced' }
    const made = await register(input)
    const supply = await world.supply()
    const replaced = world.askOver(world.writer, world.contract, { operator: `0x${'42'.repeat(20)}` })
    const again = await replaced('registerProduct', selection, input)
    assert.deepEqual([again.success, again['productId'], again['txHash']], [true, made['productId'], made['txHash']])
    const other = await replaced('registerProduct', selection, { ...input, name: 'Another belt' })
    assert.deepEqual(fieldsOf(other), ['idempotencyKey'])
    assert.equal(await world.supply(), supply)
  })

  it('refuses another request under a used key, a taken tagId and a taken item', async () => {
    const other = await register({ tagId: 'tag-3', name: 'Coat', idempotencyKey: 'coat' })
    assert.deepEqual([other.success, fieldsOf(other), other['product']], [false, ['idempotencyKey'], null])
    assert.deepEqual(fieldsOf(await register({ tagId: 'tag-2', name: 'Coat' })), ['tagId'])
    const item = { gtin, serialNumber: 'H38-1' }
    assert.deepEqual(fieldsOf(await register({ tagId: 'tag-4', name: 'Watch', ...item })), ['serialNumber'])
    await world.database.query("insert into item (token_id, gtin, serial) values (7000, $1, 'S-9')", [gtin])
    const count = await registrations()
    const taken = await register({ tagId: 'tag-4', name: 'Watch', gtin, serialNumber: 'S-9' })
    assert.deepEqual([fieldsOf(taken), await registrations()], [['serialNumber'], count])
  })

  it('looks for the item again when the first look failed: a repeat under the key mints no second one', async () => {
    const input = { tagId: 'tag-5', name: 'Watch', gtin, serialNumber: 'S-9', idempotencyKey: 'again' }
    await world.database.query('alter table token_of_item rename to away')
    await assert.rejects(register(input), /token_of_item/)
    await world.database.query('alter table away rename to token_of_item')
    const supply = await world.supply()
    assert.deepEqual(fieldsOf(await register(input)), ['serialNumber'])
    assert.equal(await world.supply(), supply)
  })

  it('reports everything that is wrong at once, each at its field', async () => {
    const wrong = await register({
      tagId: 'a\u202eb',
      name: ' \u200b ',
      brand: 'x'.repeat(201),
      serialNumber: 'ü',
      gtin: '09506000134353',
      metadata: {
        description: 'a\u0000b',
        imageUrl: 'http://example.com/a.jpg',
        origin: '\ud800',
        customFields: ['no object'],
      },
      idempotencyKey: 'no spaces',
    })
    const fields =
      'brand gtin idempotencyKey metadata.customFields metadata.description metadata.imageUrl metadata.origin name'
    assert.equal(fieldsOf(wrong).toSorted().join(' '), `${fields} serialNumber tagId`)
    assert.ok(wrong.errors.every(({ message }) => message.length > 20 && message.endsWith('.')))
  })

  const small: readonly (readonly [string, object, string])[] = [
    ['an empty tagId', { tagId: '' }, 'tagId'],
    ['a tagId of 201 characters', { tagId: 'x'.repeat(201) }, 'tagId'],
    ['a tagId with a line break', { tagId: 'a\nb' }, 'tagId'],
    ['an empty name', { name: '' }, 'name'],
    ['a GTIN without a serial number', { gtin }, 'serialNumber'],
    ['an ftp image', { metadata: { imageUrl: 'ftp://example.com/a' } }, 'metadata.imageUrl'],
    [
      'custom fields five deep',
      { metadata: { customFields: { a: { b: { c: { d: {} } } } } } },
      'metadata.customFields',
    ],
    ['a number that readers round', { metadata: { customFields: { a: 2 ** 53 } } }, 'metadata.customFields'],
    ['half a surrogate pair', { metadata: { customFields: { a: ['\udc00'] } } }, 'metadata.customFields'],
    ['more than 16 kB', { metadata: { customFields: { a: 'x'.repeat(17_000) } } }, 'metadata'],
  ]
  for (const [what, change, field] of small) {
    it(`refuses ${what}`, async () => {
      const supply = await world.supply()
      assert.deepEqual(fieldsOf(await register({ tagId: `small ${what}`, name: 'A name', ...change })), [field])
      assert.equal(await world.supply(), supply)
    })
  }

  it('names no product details: a key would read the restricted elements of those that it names', async () => {
    const details = `0x${'ab'.repeat(32)}`
    const key = { brands: ['Calder'] }
    const input = { tagId: 'details', name: 'Detailed', brand: 'Calder' }
    const made = await register({ ...input, metadata: { customFields: { details } } }, key)
    assert.deepEqual(made.errors, [])
    const texts = await world.database.query<{ body: string }>('select body from metadata where body like $1', [
      `%${details}%`,
    ])
    assert.deepEqual(
      texts.map(({ body }) => detailsHashOf(JSON.parse(body))),
      [null],
    )
    await assert.rejects(register({ ...input, metadata: { details } }, key), /Field "details" is not defined/)
  })

  it('takes a day only where a day is meant', async () => {
    const input = { tagId: 'day', name: 'A name', metadata: { manufactureDate: '2026-02-30' } }
    await assert.rejects(register(input), /A Date is a day/)
  })

  it('lands 50 at once, with nonces without a gap', async () => {
    const supply = await world.supply()
    const made = await Promise.all(
      Array.from({ length: 50 }, (_, index) => register({ tagId: `many-${index}`, name: `Product ${index}` })),
    )
    assert.ok(made.every(({ success }) => success))
    assert.equal(new Set(made.map((one) => productOf(one)['id'])).size, 50)
    assert.equal(await world.supply(), supply + 50)
    const [nonces] = await world.database.query<{ gapless: boolean }>(
      'select max(nonce) - min(nonce) + 1 = count(*) as gapless from operation',
    )
    assert.equal(nonces?.gapless, true)
  })

  it('answers without a product while the mint is not mined, and with it later under the same key', async () => {
    const impatient = world.writerOver(world.operations, { receiptWaitMs: 100 })
    const ask = world.askOver(impatient)
    const input = { tagId: 'late', name: 'Late', idempotencyKey: 'late' }
    await world.automine(false)
    const early = await ask('registerProduct', selection, input)
    assert.deepEqual([early.success, early['product']], [true, null])
    assert.match(String(early['productId']), /^\d{15}$/)
    assert.match(String(early['txHash']), /^0x/)
    assert.deepEqual(fieldsOf(await ask('registerProduct', selection, { tagId: 'late', name: 'Late' })), ['tagId'])
    await world.automine(true)
    await world.mine()
    const late = await ask('registerProduct', selection, input)
    assert.equal(productOf(late)['tagId'], 'late')
    assert.equal(late['txHash'], early['txHash'])
    assert.deepEqual([late['productId'], productOf(late)['id']], [early['productId'], early['productId']])
    await impatient.close()
  })

  it('keeps the id through a reorganisation, whatever is registered meanwhile; bindTag refuses it until it is mined', async () => {
    const input = { tagId: 'reorganised', name: 'Lost and found', idempotencyKey: 'reorganised' }
    const before = await register(input)
    await world.rpc('anvil_reorg', [1, []])
    // A transaction that was mined a moment ago may only be unknown to a node that lags behind.
    const minute = "interval '1 minute'"
    await world.database.query(
      `update operation set settled_at = settled_at - ${minute}, signed_at = signed_at - ${minute}`,
    )
    assert.equal((await world.recordOf(BigInt(String(before['productId'])))).state, 0, 'it has left the chain')
    const tag = { productId: before['productId'], uid: '04a1b2c3d4e5f6', batchId: 'none' }
    const bound = await world.ask('bindTag', 'txHash', tag)
    assert.deepEqual([bound.success, bound['txHash']], [false, null])
    const [other, again] = [await register({ tagId: 'meanwhile', name: 'Other' }), await register(input)]
    assert.notEqual(other['productId'], before['productId'])
    assert.deepEqual([again.success, again['productId']], [true, before['productId']])
    assert.equal(productOf(again)['id'], before['productId'])
    assert.equal((await world.recordOf(BigInt(String(before['productId'])))).state, 1)
  })

  it('takes the next id of a key whose first one is another product', async () => {
    const input = { name: 'Unlucky', idempotencyKey: 'unlucky' }
    await world.automine(false)
    const impatient = world.writerOver(world.operations, { receiptWaitMs: 100 })
    const { productId: first } = await world.askOver(impatient)('registerProduct', selection, {
      ...input,
      tagId: 'u-1',
    })
    await world.automine(true)
    await world.mine()
    await impatient.close()
    assert.equal((await register({ ...input, tagId: 'u-1' }))['productId'], first)
    // The same key, of a service whose database is lost.
    for (const table of ['registration', 'operation']) await world.database.query(`delete from ${table}`)
    const made = await register({ ...input, tagId: 'u-1' })
    assert.equal(made.success, true)
    assert.match(String(made['productId']), /^\d{15}$/)
    assert.notEqual(made['productId'], first)
    assert.equal(productOf(await register({ ...input, tagId: 'u-1' }))['id'], made['productId'])
  })

  it('frees the tagId when the mint is refused, and when the chain did not answer', async () => {
    const input = { tagId: 'free', name: 'Free', idempotencyKey: 'free' }
    const poor = world.writerOver(world.operations, { maxFeePerGas: 1n })
    const refused = await world.askOver(poor)('registerProduct', selection, input)
    assert.deepEqual([refused.success, fieldsOf(refused)], [false, ['input']])
    const away = world.writerOver(world.operations, {
      rpc: createRpcClient({ url: 'http://127.0.0.1:9', timeoutMs: 200 }),
    })
    await assert.rejects(world.askOver(away)('registerProduct', selection, input), /chain could not be read/)
    const other = await register({ tagId: 'free', name: 'Another one' })
    assert.equal(other.success, true)
    await poor.close()
    await away.close()
  })

  it('mints nothing without its registration, though another process that failed has removed it', async () => {
    const input = { tagId: 'shared', name: 'Shared', idempotencyKey: 'shared' }
    const [failing, working] = [heldProcess(), heldProcess()]
    const failed = assert.rejects(failing.ask('registerProduct', selection, input), /chain could not be read/)
    await failing.asked
    const made = working.ask('registerProduct', selection, input)
    await working.asked
    failing.answer.reject(new Error('no answer'))
    await failed
    working.answer.resolve()
    const { success, productId } = await made
    assert.deepEqual([success, typeof productId], [true, 'string'])
    assert.deepEqual(
      await world.database.query("select tag_id from registration where idempotency_key like '% shared'"),
      [{ tag_id: 'shared' }],
    )
    await Promise.all([failing.close(), working.close()])
  })

  /** A process over the same database, whose first mint waits for the chain. */
  function heldProcess() {
    const { promise: asked, resolve: note } = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<void>()
    const rpc: RpcClient = async (method, ...rest) => {
      if (method === 'eth_estimateGas') {
        note()
        await answer.promise
      }
      return world.rpc(method, ...rest)
    }
    const writer = world.writerOver(world.operations, { rpc })
    return { ask: world.askOver(writer), asked, answer, close: writer.close }
  }

  it('frees the tagId of a registration whose mint a crash prevented, after a while', async () => {
    await world.database.query(
      `insert into registration (idempotency_key, request_hash, tag_id, metadata_hash) values ('crashed', $1, 'stranded', $1)`,
      [new Uint8Array(32)],
    )
    assert.deepEqual(fieldsOf(await register({ tagId: 'stranded', name: 'A name' })), ['tagId'])
    await world.database.query(
      "update registration set created_at = now() - interval '11 minutes' where tag_id = 'stranded'",
    )
    assert.equal((await register({ tagId: 'stranded', name: 'A name' })).success, true)
  })

  it('logs who wrote what, and nothing of the input', () => {
    const [line = ''] = world.lines
    const { kind, apiKey, event } = JSON.parse(line) as Record<string, string>
    assert.deepEqual([event, kind, apiKey], ['written', 'mintWithId', 'testtest'])
    assert.ok(
      !world.lines.some(
        (text) => text.includes('Watch') || text.toLowerCase().includes(operator.address.slice(2).toLowerCase()),
      ),
    )
  })
})

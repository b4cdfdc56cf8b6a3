/** A product's life through GraphQL, over real sockets and a real chain (spec §4.9, §6): registered, tapped, offered, accepted. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { BatchRecord } from '../../../src/tap/keys/batch.ts'
import { alice, bob, graphqlOf, operator } from '../../support/graphql/client.ts'
import { eventually } from '../../support/wait.ts'
import { answered, initiated, lifeOf, transferred, type Payload, type Transfer } from '../../support/graphql/life.ts'
import { testTag } from '../../support/tap/tags.ts'
import { startWorld, type World } from '../../support/world.ts'

type Transferred = { productTransferred: { transfer: Transfer; product: { currentOwner: { address: string } } } }

describe('a product through GraphQL', () => {
  let world: World
  let graphql: Awaited<ReturnType<typeof graphqlOf>>
  let life: ReturnType<typeof lifeOf>
  let batch: BatchRecord
  before(async () => {
    world = await startWorld()
    graphql = await graphqlOf(world)
    life = lifeOf(graphql)
    const created = await world.components.tagKeys.create({ id: 'test', demo: true })
    assert.ok(created.ok)
    batch = created.value
  })
  after(async () => {
    await graphql.close()
    await world.end()
  })

  it('is registered, found, bound, tapped, offered, accepted; each step is delivered once and stands in the history', async () => {
    const id = await life.register('tag-1')
    const { products } = await graphql.ask<{ products: { totalCount: number; edges: { node: { id: string } }[] } }>(
      '{ products(filter: { brand: "Maison" }) { totalCount edges { node { id name verified tagId } } } }',
    )
    assert.deepEqual(products, {
      totalCount: 1,
      edges: [{ node: { id, name: 'Product tag-1', verified: false, tagId: 'tag-1' } }],
    })

    const tag = await testTag(batch)
    const uid = Buffer.from(tag.uid).toString('hex').toUpperCase()
    for (const [name, input] of [
      ['bindTag', { productId: id, uid, batchId: batch.id }],
      ['activateProduct', { productId: id }],
    ] as const) {
      const type = name === 'bindTag' ? 'BindTagInput' : 'ProductStepInput'
      const done = await graphql.ask<Record<string, Payload & { product: { state: string } }>>(
        `mutation ($input: ${type}!) { ${name}(input: $input) { success errors { field message } product { state } } }`,
        { input },
      )
      assert.ok(done[name]?.success, JSON.stringify(done))
    }

    const verifications = await graphql.listen<{ productVerified: { product: { id: string; verified: boolean } } }>(
      'subscription { productVerified { product { id tagId name verified } verifiedAt verifiedBy { address } } }',
    )
    const transfers = await graphql.listen<Transferred>(transferred, { productId: id })
    const tap = tag.next()
    for (const _twice of [1, 2]) {
      const response = await world.get(`/api/verify?picc=${tap.picc}&cmac=${tap.cmac}`)
      assert.equal(((await response.json()) as { verified: boolean }).verified, true)
    }
    assert.ok(await eventually(() => verifications.length > 0))
    assert.deepEqual(verifications[0]?.productVerified.product, {
      id,
      tagId: 'tag-1',
      name: 'Product tag-1',
      verified: true,
    })

    const { transfer, success } = await life.offer(id)
    assert.ok(success)
    assert.equal(transfer?.id, `${id}-1`)
    assert.equal(transfer?.status, 'PENDING')
    const accepted = await life.answer('acceptTransfer', transfer.id, alice)
    assert.deepEqual([accepted?.success, accepted?.transfer?.status], [true, 'CONFIRMED'], JSON.stringify(accepted))
    assert.ok(await eventually(() => transfers.length >= 2))
    assert.deepEqual(
      transfers.map(
        ({
          productTransferred: {
            transfer: { status },
          },
        }) => status,
      ),
      ['PENDING', 'CONFIRMED'],
    )
    assert.equal(transfers[1]?.productTransferred.product.currentOwner.address, alice.address)
    assert.equal(verifications.length, 1, 'one tap is announced once')

    const { product } = await graphql.ask<{
      product: {
        currentOwner: { address: string }
        verified: boolean
        history: { edges: { node: { type: string } }[] }
      }
    }>(`{ product(id: "${id}") { currentOwner { address } verified history(first: 100) { edges { node { type } } } } }`)
    assert.equal(product.currentOwner.address, alice.address)
    assert.equal(product.verified, true)
    const types = product.history.edges.map(({ node }) => node.type)
    for (const type of ['MINTED', 'TAG_BOUND', 'STATE_CHANGED', 'TRANSFER_INITIATED', 'RESOLD'])
      assert.ok(types.includes(type), `${type} in ${types.join(' ')}`)
    const history = await world.components.history(BigInt(id))
    assert.ok(history.available)
    assert.ok(history.events.some(({ type }) => type === 'AssetResold'))
  })

  it('is offered and taken back, and the offer after that has its own number', async () => {
    const id = await life.register('tag-2')
    const events = await graphql.listen<Transferred>(transferred, { productId: id })
    const first = await life.offer(id)
    const cancelled = await life.answer('cancelTransfer', first.transfer?.id ?? '', alice)
    assert.deepEqual([cancelled?.success, cancelled?.transfer?.status], [true, 'FAILED'], JSON.stringify(cancelled))
    const second = await life.offer(id, operator, bob)
    assert.equal(second.transfer?.id, `${id}-2`)
    assert.ok(await eventually(() => events.length === 3))
    assert.deepEqual(
      events.map(({ productTransferred: { transfer } }) => [transfer.id, transfer.status]),
      [
        [`${id}-1`, 'PENDING'],
        [`${id}-1`, 'FAILED'],
        [`${id}-2`, 'PENDING'],
      ],
    )
  })

  it('refuses a foreign signature, one that was used, and a transfer while flagged', async () => {
    const id = await life.register('tag-3')
    const foreign = await life.offer(id, bob)
    assert.deepEqual([foreign.success, foreign.errors[0]?.field], [false, 'signature'])
    const own = await life.offer(id)
    assert.ok(own.success)
    assert.ok((await life.answer('acceptTransfer', own.transfer?.id ?? '', alice))?.success)
    const { initiateTransfer: replayed } = await graphql.ask<{ initiateTransfer: Payload }>(initiated, {
      input: own.input,
    })
    assert.equal(replayed.success, false)

    const flagged = await life.register('tag-4')
    await world.write({ kind: 'bindTag', tokenId: BigInt(flagged), tagHash: `0x${'ab'.repeat(32)}` })
    await world.write({ kind: 'flag', tokenId: BigInt(flagged), bits: 2, reasonHash: `0x${'0'.repeat(64)}` })
    const { transferTypedData } = await graphql.ask<{ transferTypedData: Payload }>(
      `query { transferTypedData(input: { productId: "${flagged}", toAddress: "${alice.address}" }) { success errors { field message } } }`,
    )
    assert.equal(transferTypedData.success, false)
    assert.match(transferTypedData.errors[0]?.message ?? '', /flagged/i)
  })

  it('is minted once for one idempotency key, and fifty registrations at once all land', async () => {
    const mutation =
      'mutation ($input: RegisterProductInput!) { registerProduct(input: $input) { success errors { field message } product { id } } }'
    const input = { tagId: 'tag-once', name: 'Once', idempotencyKey: 'once' }
    const [one, two] = await Promise.all(
      [1, 2].map(() => graphql.ask<{ registerProduct: { product: { id: string } } }>(mutation, { input })),
    )
    assert.equal(one?.registerProduct.product.id, two?.registerProduct.product.id)
    const many = await Promise.all(
      Array.from({ length: 50 }, (_one, index) =>
        graphql.ask<{ registerProduct: Payload & { product: { id: string } | null } }>(mutation, {
          input: { tagId: `many-${index}`, name: `Many ${index}`, brand: 'Many' },
        }),
      ),
    )
    const ids = new Set(many.map(({ registerProduct }) => registerProduct.product?.id))
    assert.equal(ids.size, 50, JSON.stringify(many.filter(({ registerProduct }) => !registerProduct.success)))
    const { products } = await graphql.ask<{ products: { totalCount: number } }>(
      '{ products(filter: { brand: "Many" }) { totalCount } }',
    )
    assert.equal(products.totalCount, 50)
  })

  it('is taken over only while the offer lasts: an expired one fails, for everyone who asks', async () => {
    const id = await life.register('tag-5')
    const { transfer } = await life.offer(id)
    const signature = await alice.signTypedData(
      (await life.typedData({ action: 'ACCEPT', transferId: transfer?.id })).typedData,
    )
    await world.rpc('evm_increaseTime', [73 * 3600])
    await world.rpc('evm_mine', [])
    const late = await graphql.ask<Record<string, Payload>>(answered('acceptTransfer'), {
      input: { transferId: transfer?.id, signature },
    })
    assert.equal(late['acceptTransfer']?.success, false)
    assert.match(late['acceptTransfer']?.errors[0]?.message ?? '', /expired/i)
    assert.ok(
      await eventually(async () => {
        const { transfers } = await graphql.ask<{ transfers: { edges: { node: Transfer }[] } }>(
          `{ transfers(productId: "${id}", status: FAILED) { edges { node { id status } } } }`,
        )
        return transfers.edges[0]?.node.id === transfer?.id
      }),
    )
  })

  it('rejects a mutation of a key without the scope write', async () => {
    const reader = await graphqlOf(world, ['read'])
    await assert.rejects(
      reader.ask('mutation { registerProduct(input: { tagId: "x", name: "x" }) { success } }'),
      /FORBIDDEN/,
    )
  })
})

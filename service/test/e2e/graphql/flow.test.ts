/**
 * A product's life through GraphQL over a real chain (spec §3, §4.9, §6). It has the steps of the lifecycle as mutations, with taps and the
 * registry of tags; then over real sockets registered, tapped, offered, accepted.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { keccak256, stringToHex } from 'viem'
import type { ApiKey } from '../../../src/access/api-keys.ts'
import { createRateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import type { BatchRecord } from '../../../src/tap/keys/batch.ts'
import type { TapRequest } from '../../../src/tap/verify-tap.ts'
import { alice, bob, graphqlOf, operator } from '../../support/graphql/client.ts'
import { answered, initiated, lifeOf, transferred, type Payload, type Transfer } from '../../support/graphql/life.ts'
import { askerIn, type Ask, type Payload as Written } from '../../support/graphql/mutations.ts'
import { refusalOf } from '../../support/index/transfers.ts'
import { demoBatchOf } from '../../support/tap/bound.ts'
import { newUid, testTag } from '../../support/tap/tags.ts'
import { assertionsOf, commandsOf } from '../../support/processes/cli.ts'
import { eventually, until } from '../../support/wait.ts'
import { startWorld, type World } from '../../support/world.ts'
import { useOpened } from '../../support/opened.ts'

let world: World
let batch: BatchRecord
before(async () => {
  world = await startWorld()
  batch = await demoBatchOf(world)
})
after(() => world.end())

const uidText = (uid: Uint8Array) => Buffer.from(uid).toString('hex').toUpperCase()

describe('the lifecycle by mutations', () => {
  let ask: Ask
  const taps: TapRequest[] = []
  before(() => {
    ask = askerIn(world, {
      resolveTap: (request) => (taps.push(request), world.components.resolveTap(request)),
      forgeryLimiter: createRateLimiter({ limit: 1 }),
    })
  })

  const step = (field: string, input: object, key?: Partial<ApiKey>) => ask(field, 'txHash product { id }', input, key)
  async function is(tokenId: bigint, state: number, flags = 0): Promise<void> {
    const { record } = (await world.components.reader.read(tokenId)).asset
    assert.deepEqual([record.state, record.flags], [state, flags])
  }
  async function done(field: string, input: object): Promise<Written> {
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
  async function claimInput(productId: string, tag: Awaited<ReturnType<typeof activated>>['tag'], by = alice) {
    const signed = await consent({ action: 'CLAIM', productId, toAddress: by.address }, by)
    return { productId, claimant: by.address, ...tag.next(), ...signed, idempotencyKey: `claim-${productId}` }
  }
  async function claimed() {
    const item = await activated()
    const input = await claimInput(item.productId, item.tag)
    return { ...item, input, claim: await done('claimProduct', input) }
  }

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
    const another = { productId: String(await world.mint()), idempotencyKey: 'activate-it' }
    refusalOf(await step('activateProduct', another), 'idempotencyKey', /another request/)
    refusalOf(await step('activateProduct', once, { id: 'othertst' }), 'productId', /is ACTIVATED/)
  })

  it('claims after a tap, with consent, and answers the same again under the same key', async () => {
    const { tokenId, input, claim } = await claimed()
    await is(tokenId, 4)
    assert.equal((await done('claimProduct', input))['txHash'], claim['txHash'])
    const other = { ...input, claimant: bob.address }
    refusalOf(await step('claimProduct', other), 'idempotencyKey', /another request/)
  })

  it('claims once when the same request comes to two processes, and both answer the same', async () => {
    const [isTapped, isAnswered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const slow = askerIn(world, {
      async resolveTap(request) {
        const outcome = await world.components.resolveTap(request)
        isTapped.resolve()
        await isAnswered.promise
        return outcome
      },
    })
    const { productId, tag } = await activated()
    const input = await claimInput(productId, tag)
    const second = slow('claimProduct', 'txHash', input)
    await isTapped.promise
    const { txHash } = await done('claimProduct', input)
    isAnswered.resolve()
    assert.deepEqual(await second, { success: true, errors: [], txHash })
  })

  it('claims nothing by the chip that a product had before a reorganisation', async () => {
    const [{ tokenId, productId }, other] = [await activated(), await activated()]
    const before = askerIn(world, {
      async resolveTap(request) {
        const outcome = await world.components.resolveTap(request)
        assert.equal(outcome.kind, 'resolved')
        return { ...outcome, verdict: { ...outcome.verdict, token_id: productId } }
      },
    })
    const input = await claimInput(productId, other.tag)
    refusalOf(await before('claimProduct', 'txHash', input), 'picc', /not that of product/)
    await is(tokenId, 3)
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
    refusalOf(await step('claimProduct', { ...input, ...signed, cmac: `${tap.cmac}0` }), 'cmac', /16 hex digits/)
    const early = { ...input, ...signed, deadline: '1960-01-01T00:00:00Z' }
    refusalOf(await step('claimProduct', early), 'deadline', /is an instant/)
    const used = await world.components.database.query('select 1 from tap where uid = $1', [tag.uid])
    assert.deepEqual(used, [], 'the tap is still fresh')
    const foreign = (await activated()).tag.next()
    refusalOf(await step('claimProduct', { ...input, ...signed, ...foreign }), 'picc', /not that of product/)
    const forged = { ...input, ...signed, cmac: '0'.repeat(16) }
    refusalOf(await step('claimProduct', forged), 'picc', /did not verify/)
    refusalOf(await step('claimProduct', { ...forged, hint: 'k4187' }, { id: 'othertst' }), 'picc', /did not verify/)
    await done('claimProduct', { ...input, ...signed })
    assert.deepEqual(
      taps.slice(-3).map(({ hint, searchAfterSeconds }) => [hint, searchAfterSeconds !== undefined]),
      [
        [undefined, false],
        ['k4187', false],
        [undefined, true],
      ],
      'the key that sent a forged tap causes no search',
    )
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
    const { source } = world.components
    const [logged] = await source
      .logsBetween(0n, (await source.head()).number)
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

  it('announces that a reported item of a customer will be recycled, which it is not before 30 days', async () => {
    const { tokenId, productId } = await claimed()
    refusalOf(
      await step('announceRecycle', { productId }),
      'productId',
      /is CLAIMED; this step does not lead from there/,
    )
    await done('flagProduct', { productId, reports: ['STOLEN'] })
    refusalOf(await step('recycleProduct', { productId }), 'input', /30 days after its announcement/)
    const input = { productId, idempotencyKey: 'notice' }
    assert.equal((await done('announceRecycle', input))['txHash'], (await done('announceRecycle', input))['txHash'])
    refusalOf(await step('recycleProduct', { productId }), 'input', /30 days after its announcement/)
    await is(tokenId, 5, 2)
  })
})

type Transferred = { productTransferred: { transfer: Transfer; product: { currentOwner: { address: string } } } }

describe('a product through GraphQL', () => {
  const graphql = useOpened(() => graphqlOf(world))
  const life = lifeOf(graphql)

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
    const uid = uidText(tag.uid)
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
    const statuses = transfers.map(({ productTransferred }) => productTransferred.transfer.status)
    assert.deepEqual(statuses, ['PENDING', 'CONFIRMED'])
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

  it('is verified no more once the batch of its tag is revoked, and again by a tap after that was lifted', async () => {
    const id = await life.register('tag-9')
    const tag = await testTag(batch)
    const uid = uidText(tag.uid)
    for (const mutation of [
      `bindTag(input: { productId: "${id}", uid: "${uid}", batchId: "${batch.id}" })`,
      `activateProduct(input: { productId: "${id}" })`,
    ])
      await graphql.ask(`mutation { ${mutation} { success } }`)
    const { ok } = assertionsOf(commandsOf(world))
    const tapped = async () => {
      const { picc, cmac } = tag.next()
      assert.equal((await world.get(`/api/verify?picc=${picc}&cmac=${cmac}`)).status, 200)
    }
    const answer = () =>
      graphql.ask<{ product: { verified: boolean }; products: { totalCount: number } }>(
        `{ product(id: "${id}") { verified } products(filter: { verified: true }) { totalCount } }`,
      )
    await tapped()
    await until(async () => (await answer()).product.verified)
    await ok('tag', 'batch', 'revoke', batch.id)
    assert.deepEqual(await answer(), { product: { verified: false }, products: { totalCount: 0 } })
    await ok('tag', 'batch', 'retire', batch.id, '--lift-revocation')
    assert.equal((await answer()).product.verified, false)
    await tapped()
    await until(async () => (await answer()).product.verified)
    assert.equal((await answer()).products.totalCount, 1)
  })

  it('stands at the block that _meta names, with the head of the chain', async () => {
    const { _meta: meta } = await graphql.ask<{
      _meta: { block: { number: number }; head: number; lagBlocks: number; hasErrors: boolean }
    }>('{ _meta { block { number hash timestamp } head lagBlocks hasErrors } }')
    assert.ok(meta.head > 0)
    assert.equal(meta.lagBlocks, meta.head - meta.block.number)
    assert.equal(meta.hasErrors, false)
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

  it('refuses a foreign signature and a transfer while flagged, and uses a signature once', async () => {
    const id = await life.register('tag-3')
    const foreign = await life.offer(id, bob)
    assert.deepEqual([foreign.success, foreign.errors[0]?.field], [false, 'signature'])
    const own = await life.offer(id)
    assert.ok(own.success)
    assert.ok((await life.answer('acceptTransfer', own.transfer?.id ?? '', alice))?.success)
    const { initiateTransfer: replayed } = await graphql.ask<{ initiateTransfer: Payload & { transfer: Transfer } }>(
      initiated,
      { input: own.input },
    )
    assert.deepEqual([replayed.errors, replayed.txHash], [[], own.txHash], 'nothing more is sent')
    assert.deepEqual([replayed.transfer.id, replayed.transfer.status], [own.transfer?.id, 'CONFIRMED'])

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
})

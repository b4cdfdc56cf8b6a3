/**
 * Two instances of every role on one PostgreSQL and one Redis: what one accepts the other knows (spec §4.4, §4.9, §6). That a payment
 * settles once is in payments/processes.test.ts, that one indexer leads in index/processes.test.ts, whole faults in chaos.test.ts.
 */
import assert from 'node:assert/strict'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { generatePrivateKey } from 'viem/accounts'
import { readConfig } from '../../../src/app/config/config.ts'
import { createLog } from '../../../src/lib/log.ts'
import { startService, type Service } from '../../../src/app/service.ts'
import type { BatchRecord } from '../../../src/tap/keys/batch.ts'
import { openOwnDatabase, noPostgres } from '../../support/database/databases.ts'
import { keepLog } from '../../support/evidence.ts'
import { testFolder } from '../../support/folder.ts'
import { payTo } from '../../support/payments/buyer.ts'
import { alice, graphqlOf } from '../../support/graphql/client.ts'
import { eventually } from '../../support/wait.ts'
import { lifeOf, transferred } from '../../support/graphql/life.ts'
import { boundTag, demoBatchOf } from '../../support/tap/bound.ts'
import { startWorld, type World } from '../../support/world.ts'

type Graphql = Awaited<ReturnType<typeof graphqlOf>>
type Verified = { readonly productVerified: { readonly product: { readonly id: string }; readonly verifiedAt: string } }
type Transferred = { readonly productTransferred: { readonly transfer: { readonly status: string } } }

describe('a fleet of two', { skip: noPostgres }, () => {
  const opened = new AsyncDisposableStack()
  let database: Awaited<ReturnType<typeof openOwnDatabase>>
  let a: World
  let b: Service
  const folder = testFolder()
  let batch: BatchRecord
  let ofA: Graphql
  let ofB: Graphql
  const lines: string[] = []

  before(async () => {
    database = opened.use(await openOwnDatabase('migrated'))
    const starting = startWorld({
      env: {
        DATABASE_URL: database.url,
        REDIS_URL: process.env['TEST_REDIS_URL'] ?? 'redis://127.0.0.1:6379',
        RATE_LIMIT_ASSET: '1000000',
        RATE_LIMIT_TAP: '1000000',
        PAYMENT_PAY_TO: payTo,
        FACILITATOR_KEY: generatePrivateKey(),
        ATTESTATION_KEY: generatePrivateKey(),
      },
    })
    a = opened.adopt(await starting, (it) => it.end())
    batch = await demoBatchOf(a, 'fleet')
    await cp(join(a.settings.DATA_DIR, 'keys'), join(folder, 'keys'), { recursive: true })
    opened.defer(() => keepLog(lines))
    const log = createLog((line) => lines.push(line), 'debug')
    const config = readConfig({ ...a.settings, DATA_DIR: folder })
    b = opened.adopt(await startService(config, log), (it) => it.close(200))
    ofB = opened.adopt(await graphqlOf({ ...a, ...b }), (it) => it.close())
    ofA = opened.adopt(await graphqlOf(a), (it) => it.close())
  })
  after(() => opened.disposeAsync())

  /** A new product with a software tag that both know. */
  async function taggedProduct() {
    const { tokenId, tag } = await boundTag(a, batch)
    await a.components.tags.importTag({ uid: tag.uid, epoch: 0, batchId: 'fleet', tokenId })
    return { tokenId: String(tokenId), tag }
  }

  it('takes a tap that comes to both at once as fresh exactly once', async () => {
    const { tokenId, tag } = await taggedProduct()
    const query = 'subscription { productVerified { product { id } verifiedAt } }'
    const received = await Promise.all([ofA, ofB].map((graphql) => graphql.listen<Verified>(query)))
    const rounds = 10
    for (let round = 1; round <= rounds; round += 1) {
      const { picc, cmac } = tag.next()
      const origins = [a.url, b.urls.verification, a.url, b.urls.verification]
      const answers = await Promise.all(
        origins.map(async (url) => (await fetch(`${url}/api/verify?picc=${picc}&cmac=${cmac}`)).json()),
      )
      for (const answer of answers as { verified: boolean; tapCounter: number }[])
        assert.deepEqual([answer.verified, answer.tapCounter], [true, round])
    }
    const [counted] = await database.query<{ taps: number; events: number }>(
      `select (select count(*)::int from tap) as taps, (select count(*)::int from outbox where topic = 'tap') as events`,
    )
    assert.deepEqual(counted, { taps: rounds, events: rounds })
    for (const events of received) {
      assert.ok(await eventually(() => events.length >= rounds), `${events.length} of ${rounds} received`)
      assert.deepEqual(new Set(events.map(({ productVerified }) => productVerified.product.id)), new Set([tokenId]))
      assert.equal(new Set(events.map(({ productVerified }) => productVerified.verifiedAt)).size, rounds)
    }
  })

  it('sends subscribers of one instance what the other caused: a tap, and each step of a transfer', async () => {
    const life = lifeOf(ofB)
    const productId = await life.register('fleet-1')
    const steps = await ofA.listen<Transferred>(transferred, { productId })
    const statuses = () => steps.map(({ productTransferred }) => productTransferred?.transfer.status)
    const offer = await life.offer(productId)
    assert.ok(offer.success, JSON.stringify(offer.errors))
    assert.ok(await eventually(() => steps.length === 1), JSON.stringify(steps))
    const accepted = await life.answer('acceptTransfer', offer.transfer?.id ?? '', alice)
    assert.ok(accepted?.success, JSON.stringify(accepted))
    assert.ok(await eventually(() => steps.length === 2), JSON.stringify(steps))
    assert.deepEqual(statuses(), ['PENDING', 'CONFIRMED'])

    const { tokenId, tag } = await taggedProduct()
    const taps = await ofA.listen<Verified>('subscription { productVerified { product { id } verifiedAt } }')
    const { picc, cmac } = tag.next()
    assert.equal((await fetch(`${b.urls.verification}/api/verify?picc=${picc}&cmac=${cmac}`)).status, 200)
    assert.ok(await eventually(() => taps.length === 1))
    assert.equal(taps[0]?.productVerified.product.id, tokenId)
  })

  it('answers the same bytes for the same block', async () => {
    const tokenId = await a.mint()
    const textOf = async (url: string) => {
      const response = await fetch(`${url}/api/asset/${tokenId}`)
      return { status: response.status, etag: response.headers.get('etag'), text: await response.text() }
    }
    // Nothing is mined meanwhile: soon both have the same head.
    let answers: Awaited<ReturnType<typeof textOf>>[] = []
    const blockOf = ({ text }: { text: string }) =>
      (JSON.parse(text) as { chainRef?: { block_hash: string } }).chainRef?.block_hash
    const isSameBlock = async () => {
      answers = await Promise.all([a.url, b.urls.verification].map(textOf))
      return answers.every(({ status }) => status === 200) && new Set(answers.map(blockOf)).size === 1
    }
    assert.ok(await eventually(isSameBlock), JSON.stringify(answers))
    assert.deepEqual(answers[0], answers[1])
  })
})

/** A primary of PostgreSQL that dies under load, and its synchronous standby that takes its place: nothing accepted is lost. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Abi } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { installTestMoney, moneyAccounts } from '../../../src/chain/devchain/test-money.ts'
import { publishedKey } from '../../../src/domain/published-accounts.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { locks } from '../../../src/db/locks.ts'
import { isDatabaseUnavailable } from '../../../src/lib/errors.ts'
import { readContract } from '../../../src/chain/rpc/contract.ts'
import { tokenAbi } from '../../../src/payments/on-chain.ts'
import { clusterSkip, startClusters, type Clusters } from '../../support/database/postgres-cluster.ts'
import { graphqlOf } from '../../support/graphql/client.ts'
import { openItems, queryOf } from '../../support/passport/passport.ts'
import { asset, buy, payTo, price, sign } from '../../support/payments/buyer.ts'
import { until } from '../../support/wait.ts'
import { startWorld, type World } from '../../support/world.ts'

/** The service is back so long after the promotion. */
const backMs = 15_000
const payer = privateKeyToAccount(generatePrivateKey())

describe('a synchronous standby', { skip: clusterSkip }, () => {
  const opened = new AsyncDisposableStack()
  let clusters: Clusters
  let world: World
  let load: Load
  before(async () => {
    clusters = opened.adopt(await startClusters({ synchronous: true }), (it) => it.end())
    world = opened.adopt(
      await startWorld({
        env: {
          DATABASE_URL: clusters.url,
          DATABASE_READ_URL: clusters.replica.url,
          PAYMENT_PAY_TO: payTo,
          FACILITATOR_KEY: publishedKey(moneyAccounts.facilitator),
          ATTESTATION_KEY: generatePrivateKey(),
        },
        async rpcUrl(target) {
          await installTestMoney({ rpcUrl: target, fund: [{ address: payer.address, amount: price * 1_000n }] })
          return target
        },
      }),
      (it) => it.end(),
    )
    load = await beginLoad(world)
  })
  after(() => opened.disposeAsync())

  it('takes over within seconds of its promotion, with every accepted tap and payment', async () => {
    const idle = opened.use(await openDatabase({ url: clusters.url }))
    // The end of the server must come before the time-out of the statement, also on a busy machine.
    const statementTimeoutMs = 600_000
    const busy = opened.use(await openDatabase({ url: clusters.primary.url, statementTimeoutMs }))
    // A computation does not look whether the postmaster lives.
    const computation = busy.query('select count(*) from generate_series(1, 1e5) a, generate_series(1, 1e5) b')
    const cutOff = assert.rejects(computation, isDatabaseUnavailable)
    await until(() => load.taps.length > 50 && load.payments.length > 0)
    await clusters.primary.kill()
    await cutOff
    await until(() => load.refused() > 0)
    const path = `/01/09520001000003/21/none`
    assert.equal((await fetch(world.url + path)).status, 503)
    const before_ = { taps: load.taps.length, payments: load.payments.length }
    await clusters.replica.promote()
    const promoted = performance.now()
    assert.equal((await idle.query('select 1')).length, 1, 'what was not sent to the former is sent to the new one')
    await until(() => load.taps.length > before_.taps && load.payments.length > before_.payments)
    const back = performance.now() - promoted
    await until(() => load.taps.length > before_.taps + 50)
    await load.end()
    assert.ok(back < backMs, `back ${Math.round(back)} ms after the promotion`)

    const standby = opened.use(await openDatabase({ url: clusters.replica.url }))
    const rows = await standby.query<{ tap: string }>(`select encode(uid, 'hex') || ' ' || counter as tap from tap`)
    const kept = new Set(rows.map(({ tap }) => tap))
    assert.deepEqual(
      load.taps.filter((tap) => !kept.has(tap)),
      [],
    )
    assert.equal(new Set(load.taps).size, load.taps.length, 'no counter was accepted twice')
    // A proof whose delivery the dead primary did not note is given again. That next payment is not executed.
    const proofs = BigInt(new Set(load.payments).size)
    const [paid] = await standby.query<{ sold: bigint }>('select count(*) as sold from payment')
    assert.equal(paid?.sold, proofs)
    const charged = await readContract(world.components.paymentRpc, {
      to: asset,
      abi: tokenAbi as Abi,
      functionName: 'balanceOf',
      args: [payTo],
    })
    assert.equal(charged, price * proofs)
  })

  it('has the leader of the index, its listeners, its lists and the locks of payments again', async () => {
    await until(async () => (await world.components.indexer.status()).role === 'leader')
    const graphql = opened.adopt(await graphqlOf(world), (it) => it.close())
    const tokenId = await world.mint({ name: 'After' })
    await until(async () => {
      const { product } = await graphql.ask<{ product: { name: string } | null }>(
        'query ($id: ID!) { product(id: $id) { name } }',
        { id: String(tokenId) },
      )
      return product?.name === 'After'
    })
    await until(() => world.components.lists.stats?.().up === true)
    const { products } = await graphql.ask<{ products: { edges: { node: { name: string } }[] } }>(
      '{ products(first: 1) { edges { node { name } } } }',
    )
    assert.deepEqual(products.edges, [{ node: { name: 'After' } }])
    const other = opened.use(await openDatabase({ url: clusters.url }))
    assert.equal(await other.hold(locks.indexLeader), null)
  })

  it('is not left for the former primary, which takes writes again when it is started without a fence', async () => {
    await clusters.primary.start()
    const onFormer = opened.use(await openDatabase({ url: clusters.primary.url }))
    const recovery = 'select pg_is_in_recovery() as standby'
    assert.deepEqual(await onFormer.query(recovery), [{ standby: false }])
    const [former] = await onFormer.query<{ port: string }>(`select current_setting('port') as port`)
    const portOf = async (database: Pick<typeof onFormer, 'query'>) =>
      (await database.query<{ port: string }>(`select current_setting('port') as port`))[0]?.port
    assert.notEqual(await portOf(world.components.database), former?.port)
    const fresh = opened.use(await openDatabase({ url: clusters.url }))
    assert.notEqual(await portOf(fresh), former?.port, 'a new process finds the newer timeline')
    await clusters.replica.stop()
    await assert.rejects(portOf(fresh), isDatabaseUnavailable)
    for (let asked = 0; asked < 5; asked += 1) {
      await assert.rejects(portOf(fresh), isDatabaseUnavailable, 'better none than the former')
      await delay(100)
    }
    await clusters.replica.start()
    await until(async () => (await portOf(fresh).catch(() => former?.port)) !== former?.port)
  })
})

type Load = Awaited<ReturnType<typeof beginLoad>>

/** Taps of six tags and payments, one after another each, every one repeated as it was until it is accepted. */
async function beginLoad(world: World) {
  const items = await openItems(world)
  const tags = [await items.bound(), await items.bound(), await items.bound(), await items.bound()]
  const taps: string[] = []
  const payments: string[] = []
  const over = new AbortController()
  let refused = 0

  /** Repeats a request as it was: it may have been accepted although its answer was lost. */
  async function untilAccepted(ask: () => Promise<string | null>): Promise<string> {
    for (;;) {
      const accepted = await ask()
      if (accepted !== null) return accepted
      refused += 1
      await delay(50)
    }
  }

  async function keepTapping({ tag }: (typeof tags)[number]): Promise<void> {
    while (!over.signal.aborted) {
      const url = `${world.url}/api/verify?${queryOf(tag.next())}`
      taps.push(
        await untilAccepted(async () => {
          const response = await fetch(url)
          const answer = (await response.json()) as {
            verified?: boolean
            reason?: string
            uid: string
            tapCounter: number
          }
          if (response.status === 503) return null
          assert.ok(answer.verified, `${response.status} ${answer.reason}`)
          return `${answer.uid.toLowerCase()} ${answer.tapCounter}`
        }),
      )
    }
  }

  async function keepBuying(): Promise<void> {
    while (!over.signal.aborted) {
      const payment = await sign(payer)
      payments.push(
        await untilAccepted(async () => {
          const { status, text } = await buy(world.urls.gateway, 1n, payment)
          if (status === 503) return null
          assert.equal(status, 200, text)
          return text
        }),
      )
      await delay(100)
    }
  }

  const ended = Promise.all([...tags.map(keepTapping), keepBuying()])
  ended.catch(() => {}) // `end` rejects
  return {
    taps,
    payments,
    refused: () => refused,
    end: async () => {
      over.abort()
      await ended
    },
  }
}

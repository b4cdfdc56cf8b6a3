/**
 * The database is unavailable while the hosts serve, or ends statements by a limit. A request that needs it gets 503 with Retry-After, until
 * it is back.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Abi } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { installTestMoney, moneyAccounts } from '../../../src/chain/devchain/test-money.ts'
import { publishedKey } from '../../../src/domain/published-accounts.ts'
import { sleep } from '../../../src/lib/async/sleep.ts'
import { newApiKey } from '../../../src/access/api-keys.ts'
import { readContract } from '../../../src/chain/rpc/contract.ts'
import { tokenAbi } from '../../../src/payments/on-chain.ts'
import type { TapTickets } from '../../../src/tap/tap-ticket.ts'
import { citusUrl } from '../../support/database/citus.ts'
import { openOwnDatabase, noPostgres } from '../../support/database/databases.ts'
import { answerAs, atPort } from '../../support/database/proxy.ts'
import { freePort } from '../../support/free-port.ts'
import { graphqlOf } from '../../support/graphql/client.ts'
import { asset, buy, buySettled, payTo, price, sign } from '../../support/payments/buyer.ts'
import { readContract as readDescription, textAsDescribed } from '../../support/contract.ts'
import { boundTag, demoBatchOf } from '../../support/tap/bound.ts'
import { startWorld, type World } from '../../support/world.ts'
import { eventually } from '../../support/wait.ts'

const payer = privateKeyToAccount(generatePrivateKey())
const gtin = '09520001000010'

describe('while the database is away', { skip: noPostgres }, () => {
  let database: Awaited<ReturnType<typeof openOwnDatabase>>
  let postgres: AsyncDisposable
  let port: number
  let world: World
  let graphql: Awaited<ReturnType<typeof graphqlOf>>
  let tap: () => string
  let tickets: { readonly claim: string; readonly report: string; readonly certificate: string }
  before(async () => {
    database = await openOwnDatabase('migrated')
    port = await freePort()
    postgres = await answerAs(database.url, port)
    world = await startWorld({
      env: {
        DATABASE_URL: atPort(database.url, port),
        PAYMENT_PAY_TO: payTo,
        FACILITATOR_KEY: publishedKey(moneyAccounts.facilitator),
        ATTESTATION_KEY: generatePrivateKey(),
        PAGE_OWNERSHIP: 'claim,transfer',
        PASSPORT_SIGNING: 'on',
      },
      async rpcUrl(target) {
        await installTestMoney({ rpcUrl: target, fund: [{ address: payer.address, amount: price }] })
        return target
      },
    })
    const { tokenId, tag } = await boundTag(world, await demoBatchOf(world, 'away'), { name: 'Away' })
    await world.write({ kind: 'activate', tokenId })
    await world.components.tags.importTag({ uid: tag.uid, epoch: 0, batchId: 'away', tokenId, gtin, serial: 'A-1' })
    tap = () => {
      const { picc, cmac } = tag.next()
      return `picc=${picc}&cmac=${cmac}`
    }
    graphql = await graphqlOf(world)
    await graphql.ask('{ __typename }')
    const { reportTickets, certificateTickets, pageClaims } = world.components
    const tagHash = world.components.tagHash?.(tag.uid) ?? assert.fail('there is no pepper')
    const tapped = { tokenId, tagHash, epoch: 0, tapCounter: 1, batchId: 'away', ageSeconds: 0 }
    const ticketOf = (from: TapTickets | undefined) => from?.issue(tapped) ?? assert.fail('there are no tickets')
    tickets = {
      claim: ticketOf(pageClaims?.tickets),
      report: ticketOf(reportTickets),
      certificate: ticketOf(certificateTickets),
    }
  })
  after(async () => {
    await graphql?.close()
    await world?.end()
    await postgres?.[Symbol.asyncDispose]()
    await database?.close()
  })

  const ask = { method: 'POST', headers: { 'Content-Type': 'application/json' } }
  const sent = (type: string, body: string, headers: Record<string, string> = {}): RequestInit => ({
    method: 'POST',
    headers: { 'Content-Type': type, ...headers },
    body,
  })
  const form = 'application/x-www-form-urlencoded'
  const rpc = (method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })

  /** Asks every route of every host. `isTimed`: GraphQL says of a statement that took too long that the filter has to be narrower. */
  async function askEverything(isTimed = false): Promise<void> {
    const earlier = world.lines.length
    const { verification, graphql: graphs, gateway } = world.urls
    const operation = JSON.stringify({ query: '{ products(first: 1) { totalCount } }' })
    const all: readonly [url: string, init?: RequestInit][] = [
      [`${verification}/api/verify?${tap()}`],
      [`${verification}/api/dpp/token/1?${tap()}`],
      [`${verification}/api/dpp/01/${gtin}/21/A-1?${tap()}`],
      [`${verification}/01/${gtin}/21/A-1`],
      [`${verification}/01/${gtin}/21/A-1?${tap()}`],
      [`${verification}/tap?${tap()}`],
      [`${verification}/?find=${encodeURIComponent(`${world.url}/01/${gtin}/21/A-1`)}`],
      [`${verification}/?find=A-1`],
      [`${verification}/bulk`, sent('text/csv', `gtin,serial\n${gtin},A-1\n`, { Accept: 'text/csv' })],
      [`${verification}/bulk`, sent('text/csv', `gtin,serial\n${gtin},A-1\n`)],
      [`${verification}/api/product/01/${gtin}/21/A-1`],
      [`${verification}/api/product/01/${gtin}`],
      [`${verification}/dpps/${encodeURIComponent(`${verification}/api/product/01/${gtin}/21/A-1`)}`],
      [`${verification}/dppsByProductId/${gtin}`],
      [`${verification}/dppsByProductIds`, sent('application/json', JSON.stringify({ productIds: [gtin] }))],
      [`${verification}/api/restricted/0x${'ab'.repeat(32)}`, { headers: { Authorization: `Bearer ${graphql.key}` } }],
      [`${verification}/report`, sent(form, String(new URLSearchParams({ ticket: tickets.report })))],
      [`${verification}/certificate`, sent(form, String(new URLSearchParams({ ticket: tickets.certificate })))],
      [
        `${verification}/claim`,
        sent('application/json', JSON.stringify({ ticket: tickets.claim, account: payer.address })),
      ],
      [
        `${graphs}/graphql`,
        { ...ask, headers: { ...ask.headers, Authorization: `Bearer ${graphql.key}` }, body: operation },
      ],
      [
        `${graphs}/graphql`,
        { ...ask, headers: { ...ask.headers, Authorization: `Bearer ${newApiKey().text}` }, body: operation },
      ],
    ]
    const needs = isTimed ? all.toSpliced(-2, 1) : all
    const others: readonly [url: string, init?: RequestInit][] = [
      [`${verification}/api/asset/1`],
      [`${verification}/token/1`],
      [`${verification}/`],
      [
        `${verification}/transfer`,
        sent('application/json', JSON.stringify({ step: 'offer', account: payer.address, to: payTo, ticket: 'x' })),
      ],
      [`${verification}/t/1-1`],
      [`${verification}/api/product/token/1`],
      [`${verification}/api/agents/0`],
      [`${verification}/assets/pictures/${'ab'.repeat(32)}`],
      [`${verification}/bulk`, sent('text/csv', '1', { Accept: 'text/csv' })],
      [`${verification}/api/metadata/0x${'ab'.repeat(32)}`],
      [`${verification}/api/status/revocation/1`],
      [`${verification}/a2a`, { ...ask, body: rpc('GetTask', { id: 'x' }) }],
      [`${gateway}/verify`, { ...ask, body: '{"assetId":"1"}' }],
      [`${gateway}/health`],
    ]
    for (const [url, init] of [...needs, ...others]) {
      const response = await fetch(url, init)
      const text = url.endsWith('/claim') ? await textAsDescribed('claimItem', response) : await response.text()
      const what = `${url.replace(/picc=.*/, '…')} ${response.status} ${text.slice(0, 300)}`
      assert.doesNotMatch(text, /unexpected/, what)
      assert.notEqual(response.status, 500, what)
      if (needs.some(([needed]) => needed === url)) assert.equal(response.status, 503, what)
      if (response.status === 503) assert.match(response.headers.get('retry-after') ?? '', /^\d+$/, what)
    }
    const internal = world.lines.slice(earlier).filter((line) => line.includes('"code":"INTERNAL"'))
    assert.deepEqual(internal, [])
  }

  /** Holds every table, so that statements wait until PostgreSQL ends them. */
  async function whileTablesAreHeld(work: () => Promise<unknown>): Promise<void> {
    await database.transaction(async (sql) => {
      const tables = await sql.query<{ name: string }>(
        `select relname as name from pg_class where relkind = 'r' and relnamespace = current_schema()::regnamespace`,
      )
      await sql.query(`lock table ${tables.map(({ name }) => name).join(', ')} in access exclusive mode`)
      await work()
    })
  }

  async function cutConnections(): Promise<void> {
    await postgres[Symbol.asyncDispose]()
    postgres = await answerAs(database.url, port)
  }

  const onOneServer = citusUrl !== undefined && 'workers of a cluster have locks and limits of their own'

  it('every route answers 503 where locks are not given in time', { skip: onOneServer }, async () => {
    const alter = (change: string) =>
      database.exec(`alter database ${new URL(database.url).pathname.slice(1)} ${change}`)
    await alter(`set lock_timeout = '20ms'`)
    await cutConnections()
    await whileTablesAreHeld(() => askEverything())
    await alter('reset lock_timeout')
    await cutConnections()
  })

  it(
    'every route answers 503 where statements are ended because they take too long',
    { skip: onOneServer },
    async () => {
      await whileTablesAreHeld(async () => {
        let isDone = false
        const asking = askEverything(true).finally(() => (isDone = true))
        const cancel = `select pg_cancel_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
        for (; !isDone; await sleep(20)) await database.query(cancel)
        await asking
      })
    },
  )

  it('every route of every host that needs it answers 503 with Retry-After, and never that something was unexpected', async () => {
    await postgres[Symbol.asyncDispose]()
    await askEverything()
  })

  it('every route that the description has answers without a fault that was not expected', async () => {
    const { operations } = readDescription(await (await fetch(`${world.url}/openapi.json`)).text())
    const values: Readonly<Record<string, string>> = { gtin, serial: 'A-1', tokenId: '1', transferId: '1-1' }
    for (const { method, path, servers, operationId, parameters } of operations) {
      const target = path.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? 'x')
      const query = parameters.some(({ name }) => name === 'picc') ? `?${tap()}` : ''
      for (const server of servers) {
        const response = await fetch(server + target + query, { method, redirect: 'manual' })
        const text = await response.text()
        assert.notEqual(response.status, 500, `${operationId}: ${text.slice(0, 300)}`)
        assert.doesNotMatch(text.slice(0, 2_000), /unexpected/, operationId)
      }
    }
  })

  const charged = () =>
    readContract(world.components.paymentRpc, {
      to: asset,
      abi: tokenAbi as Abi,
      functionName: 'balanceOf',
      args: [payTo],
    })

  it('a paid request gets 503 ledger_unavailable and is not charged; the same header pays when it is back', async () => {
    const payment = await sign(payer)
    const away = await buy(world.urls.gateway, 1n, payment)
    assert.deepEqual([away.status, away.body.error], [503, 'ledger_unavailable'])
    assert.match(away.headers.get('retry-after') ?? '', /^\d+$/)
    assert.equal(await charged(), 0n)
    postgres = await answerAs(database.url, port)
    const sold = await buySettled(world.urls.gateway, 1n, payment)
    assert.equal(sold.status, 200, sold.text)
    assert.equal(await charged(), price)
    await postgres[Symbol.asyncDispose]()
  })

  it('and everything is answered again when it is back', async () => {
    postgres = await answerAs(database.url, port)
    const url = `${world.url}/api/verify?${tap()}`
    assert.ok(await eventually(async () => (await fetch(url)).status === 200))
  })
})

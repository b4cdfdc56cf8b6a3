/** A service with something of everything that it keeps, and restored ones beside it on the same chain. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { gunzipSync, gzipSync } from 'node:zlib'
import { privateKeyToAccount } from 'viem/accounts'
import { publishedAddresses, publishedKey } from '../../../src/domain/published-accounts.ts'
import { installTestMoney, moneyAccounts } from '../../../src/chain/devchain/test-money.ts'
import { buyAttestation } from '../../../src/cli/payments/buy.ts'
import { createRpcClient } from '../../../src/chain/rpc/client.ts'
import { readConfig } from '../../../src/app/config/config.ts'
import { createLog } from '../../../src/lib/log.ts'
import { unseal } from '../../../src/lib/sealed/file.ts'
import { openChunks } from '../../../src/lib/sealed/stream.ts'
import { startService } from '../../../src/app/service.ts'
import { dumpDatabase } from '../../../src/db/backup.ts'
import type { Database } from '../../../src/db/database.ts'
import { testFolder } from '../folder.ts'
import { bareCommandsOf, commandsOf } from '../processes/cli.ts'
import { buyThrough, channelOf, depositPayload, installChannels } from '../payments/channels.ts'
import { openOwnDatabase } from './databases.ts'
import { keepLog } from '../evidence.ts'
import { alice, graphqlOf } from '../graphql/client.ts'
import { lifeOf } from '../graphql/life.ts'
import { openItems, queryOf } from '../passport/passport.ts'
import { until } from '../wait.ts'
import { patientDeadlines, startWorld, type World } from '../world.ts'

const list = '{ products(first: 50) { totalCount edges { node { id name verified transfers { id status } } } } }'

/** On the embedded database, unless `more` names another: products, one offered and one sold. Taps; a payment; keys of every kind. */
export async function startFullWorld(more: Readonly<Record<string, string>> = {}) {
  const opened = new AsyncDisposableStack()
  const world = opened.adopt(
    await startWorld({
      env: {
        PASSPORT_SIGNING: 'on',
        TAP_WINDOW_SECONDS: '0',
        PAYMENT_PAY_TO: publishedAddresses[moneyAccounts.seller] ?? '',
        FACILITATOR_KEY: publishedKey(moneyAccounts.facilitator),
        PAYMENT_CHANNELS: 'on',
        PAYMENT_CHANNEL_KEYS: publishedKey(moneyAccounts.minter),
        ...more,
      },
      rpcUrl: async (rpcUrl) => {
        const address = publishedAddresses[moneyAccounts.payer] ?? '0x'
        await installTestMoney({ rpcUrl, fund: [{ address, amount: 2_000_000n }] })
        await installChannels(createRpcClient({ url: rpcUrl }))
        return rpcUrl
      },
    }),
    (it) => it.end(),
  )
  const graphql = opened.adopt(await graphqlOf(world), (it) => it.close())
  const items = await openItems(world)
  const item = await items.bound({ name: 'Kept', description: 'Line\u2028break, «quotes» and \\ "more"' })
  const used = item.tag.next()
  assert.match(await textOf(world.url, `/api/verify?${queryOf(used)}`), /"verified":true/)
  for (let replays = 0; replays < 5; replays += 1)
    assert.match(await textOf(world.url, `/api/verify?${queryOf(used)}`), /"reason":"replayed"/)
  await until(async () => (await world.components.database.query('select from tap_anomaly')).length > 0)
  const passport = `/api/dpp/01/${item.gtin}/21/${item.serial}?${queryOf(item.tag.next())}`
  assert.match(await textOf(world.url, passport, 'application/vc+jwt'), /^ey/)
  const unused = item.tag.next()
  const life = lifeOf(graphql)
  const [sold, offered] = [await life.register('tag-1'), await life.register('tag-2')]
  await life.answer('acceptTransfer', (await life.offer(sold)).transfer?.id ?? '', alice)
  await life.offer(offered)
  const erased = "insert into erased_message (transfer_id, hash) values ('1-1', decode(repeat('7', 64), 'hex'))"
  await world.components.database.query(erased)
  const payer = privateKeyToAccount(publishedKey(moneyAccounts.payer))
  const purchase = { gateway: new URL(`${world.urls.gateway}/`), tokenId: 1n, account: payer, most: 100_000n }
  await buyAttestation({ ...purchase, identifier: 'backup_0123456789' })
  const lower = (index: number) => (publishedAddresses[index] ?? '').toLowerCase() as `0x${string}`
  const receiver = lower(moneyAccounts.seller)
  const channel = channelOf(lower(moneyAccounts.payer), lower(moneyAccounts.minter), { receiver })
  const deposit = await depositPayload(payer, channel, { amount: 1_000_000n, sum: 10_000n })
  assert.equal((await buyThrough(world.urls.gateway, 1n, deposit)).status, 200)
  await world.components.indexer.until(BigInt((await world.rpc('eth_blockNumber', [])) as string), 600_000)

  /** An empty place for a restore; with `url` in PostgreSQL. */
  async function place(engine: 'PGlite' | 'PostgreSQL') {
    const folder = testFolder()
    const database = engine === 'PostgreSQL' ? opened.use(await openOwnDatabase()) : null
    const settings = {
      ...world.settings,
      DATA_DIR: join(folder, 'data'),
      ...(database !== null && { DATABASE_URL: database.url }),
    }
    return { folder, settings, database, run: bareCommandsOf(settings) }
  }

  /** Serves a place that was restored. */
  async function serve(settings: World['settings']) {
    const lines: string[] = []
    const service = await startService(
      readConfig(settings),
      createLog((line) => lines.push(line), 'debug'),
      { deadlines: patientDeadlines },
    )
    const close = async () => {
      keepLog(lines)
      await service.close(200)
    }
    opened.defer(close)
    return { ...service, close, run: commandsOf({ ...world, ...service, settings }) }
  }

  return {
    world,
    graphql,
    used,
    unused,
    place,
    serve,
    run: commandsOf(world),
    /** Returns what people see of a service, without its addresses. */
    async seen(urls: World['urls']) {
      const texts = await Promise.all([
        ...['/api/asset/1', '/api/asset/2', '/api/asset/3', '/.well-known/did.json'].map((path) =>
          textOf(urls.verification, path),
        ),
        textOf(urls.gateway, '/.well-known/attestation.json'),
        textOf(urls.graphql, `/graphql?query=${encodeURIComponent(list)}`, 'application/json', graphql.key),
      ])
      const hosts = Object.values(urls).map((url) => new URL(url).host.replace(':', '(?::|%3A)'))
      return texts.map((text) => text.replace(new RegExp(hosts.join('|'), 'g'), 'host'))
    },
    end: () => opened.disposeAsync(),
  }
}

export async function textOf(url: string, path: string, accept = '*/*', key = ''): Promise<string> {
  const response = await fetch(url + path, { headers: { Accept: accept, Authorization: `Bearer ${key}` } })
  return response.text()
}

/** Opens the seal of a backup, and returns its lines as an earlier version wrote them, without the end. */
export async function linesOf(path: string, kek: string): Promise<readonly string[]> {
  const file = await readFile(path)
  const associated = file.subarray(0, file.indexOf(10) + 1)
  const { dataKey } = JSON.parse(associated.toString()) as { dataKey: unknown }
  const { value } = unseal('backup', JSON.stringify(dataKey), Buffer.from(kek, 'hex')) ?? {}
  const key = Buffer.from(String(value), 'hex')
  const parts: Buffer[] = []
  for await (const part of openChunks(Readable.from([file.subarray(associated.length)]), { key, associated }))
    parts.push(part)
  const text = gunzipSync(Buffer.concat(parts)).toString().replace('"format":2', '"format":1')
  return text.split('\n').slice(0, -2)
}

/** Makes a file of an earlier version, whose sum fits its lines. */
export function unsealedFile(lines: readonly string[]): Buffer {
  const text = lines.map((line) => `${line}\n`).join('')
  const rows: Record<string, number> = {}
  const files = new Set<string>()
  let table = ''
  for (const line of lines) {
    const { file, table: next } = line.startsWith('{"row":')
      ? {}
      : (JSON.parse(line) as { file?: string; table?: string })
    if (next !== undefined) rows[(table = next)] = 0
    if (file !== undefined) files.add(file)
    if (line.startsWith('{"row":')) rows[table] = (rows[table] ?? 0) + 1
  }
  const sha256 = createHash('sha256').update(text).digest('hex')
  return gzipSync(`${text}${JSON.stringify({ end: { rows, files: files.size, sha256 } })}\n`)
}

/** Every row that a backup would keep, and where numbers go on. */
export async function rowsOf(database: Database): Promise<Record<string, readonly string[]>> {
  const tables: Record<string, string[]> = {}
  let current: string[] = []
  await dumpDatabase(database, {
    schema: async () => {},
    table: async (head) => void (tables[head.table] = current = [JSON.stringify(head)]),
    rows: async (texts) => void current.push(...texts),
  })
  for (const rows of Object.values(tables)) rows.sort()
  return tables
}

/** docs/incidents.md: each incident happens, its commands are typed as they stand there, and it is over. */
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { encodeAbiParameters, encodeFunctionData, keccak256, type Hex } from 'viem'
import { readConfig } from '../../../src/app/config/config.ts'
import { startService, type Service } from '../../../src/app/service.ts'
import { appendAudit, auditHead, formatHead } from '../../../src/db/audit.ts'
import { assetRegistryAbi } from '../../../src/domain/registry-abi.ts'
import { publishedAccounts, publishedKey } from '../../../src/domain/published-accounts.ts'
import { createLog } from '../../../src/lib/log.ts'
import { openOwnDatabase, noPostgres } from '../../support/database/databases.ts'
import { keepLog, keepSecret } from '../../support/evidence.ts'
import { testFolder } from '../../support/folder.ts'
import { graphqlOf } from '../../support/graphql/client.ts'
import { lifeOf } from '../../support/graphql/life.ts'
import { serve } from '../../support/http.ts'
import { openItems, queryOf, type TappedItem } from '../../support/passport/passport.ts'
import { cliInShell, inherited, touchstone } from '../../support/processes/cli.ts'
import { read } from '../../support/processes/deploy.ts'
import { testTag } from '../../support/tap/tags.ts'
import { until } from '../../support/wait.ts'
import { noMetadata, startWorld, type World } from '../../support/world.ts'

/** Blocks of commands below each heading, in their order. */
const incidents = new Map(
  read('docs/incidents.md')
    .split(/^## /m)
    .slice(1)
    .map((section) => [
      section.slice(0, section.indexOf('\n')),
      [...section.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, text = '']) => text),
    ]),
)
const ran = new Set<string>()

/** The folder of Foundry's `cast`, which is not a dependency of the project. */
const castFolder = process.env['TEST_CAST'] ?? ''
const hasCast = spawnSync(join(castFolder, 'cast'), ['--version']).status === 0
const skipCast = hasCast || process.env['REQUIRE_SERVICES'] === '1' ? false : 'no cast: TEST_CAST names its folder'

const [admin, , , , , , , leaked, successor] = publishedAccounts(9)
const addressOf = (account: typeof admin) => account?.address ?? '0x'

describe('docs/incidents.md', { skip: noPostgres }, () => {
  const opened = new AsyncDisposableStack()
  let database: Awaited<ReturnType<typeof openOwnDatabase>>
  let world: World
  const folder = testFolder()
  let graphql: Awaited<ReturnType<typeof graphqlOf>>
  let item: TappedItem
  /** A provider between the world and its chain. It replaces each text of the map in every answer. */
  const lies = new Map<string, string>()
  let service: Service | undefined

  before(async () => {
    database = opened.use(await openOwnDatabase('migrated'))
    const rpcUrl = async (chain: string) => opened.adopt(await startLiar(chain, lies), (it) => it.close()).url
    world = opened.adopt(await startWorld({ env: { DATABASE_URL: database.url }, rpcUrl }), (it) => it.end())
    graphql = opened.adopt(await graphqlOf(world), (it) => it.close())
    opened.defer(() => service?.close(200))
    item = await (await openItems(world)).bound({ name: 'Satchel' })
  })
  after(() => opened.disposeAsync())

  /** Runs a block as it is printed, with the words that the reader fills in. Returns its output. */
  async function type(title: string, index: number, words: Readonly<Record<string, string>> = {}) {
    const block = incidents.get(title)?.[index]
    assert.ok(block !== undefined, `${title} has no block ${index}`)
    ran.add(`${title} ${index}`)
    const script = `set -euo pipefail\n${cliInShell}\n${block}`
    const env = { ...inherited, ...world.settings, ...words, PATH: `${castFolder}${delimiter}${inherited.PATH}` }
    return new Promise<{ exit: number; out: string; err: string }>((resolve) =>
      execFile('/bin/bash', ['-c', script], { cwd: folder, env, timeout: 600_000 }, (error, out, err) =>
        resolve({ exit: error === null ? 0 : Number(error.code ?? -1), out, err }),
      ),
    )
  }

  /** Runs a block that must succeed, and returns what it printed. */
  async function done(...block: Parameters<typeof type>): Promise<string> {
    const { exit, out, err } = await type(...block)
    assert.equal(exit, 0, out + err)
    return out
  }

  /** Starts the service again with these settings, and returns its address. The one of before is ended. */
  async function restarted(settings: Readonly<Record<string, string>>): Promise<string> {
    await service?.close(200)
    const lines: string[] = []
    service = await startService(
      readConfig({ ...world.settings, ...settings }),
      createLog((line) => lines.push(line), 'debug'),
    )
    keepLog(lines)
    return service.urls.verification
  }

  const tapped = async (tag: TappedItem['tag'], url = world.url) =>
    (await fetch(`${url}/api/verify?${queryOf(tag.next())}`)).json() as Promise<Record<string, unknown>>
  const verdictOf = async (tokenId: bigint, url = world.url) =>
    (await fetch(`${url}/api/asset/${tokenId}`)).json() as Promise<Record<string, unknown>>

  it('ends a leaked API key, shows what it changed, and makes another', async () => {
    const title = 'A leaked API key'
    const product = await lifeOf(graphql).register('leaked-1')
    const [key] = await world.components.apiKeys.list()
    const words = { KEY_ID: key?.id ?? '' }
    const ask = async () => {
      const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${graphql.key}` }
      const body = JSON.stringify({ query: '{ __typename }' })
      return (await fetch(`${world.urls.graphql}/graphql`, { method: 'POST', headers, body })).status
    }
    assert.equal(await ask(), 200)
    assert.match(await done(title, 0, words), /is revoked/)
    await until(async () => (await ask()) === 401)
    assert.match(await done(title, 1, words), /^revoked +20/m)
    const changes = await readFile(join(folder, 'changes.jsonl'), 'utf8')
    assert.match(changes, new RegExp(`"act":"\\w+","subject":"${product}"`))
    await done(title, 2)
    const made = (await readFile(join(folder, 'new-key.txt'), 'utf8')).trim()
    assert.match(made, /^ts_live_/)
    keepSecret(made)
  })

  it('makes copies of a leaked batch counterfeit, and verifies chips that are written again', async () => {
    const title = 'Leaked keys of a tag batch'
    assert.equal((await tapped(item.tag))['verified'], true)
    assert.match(await done(title, 0, { BATCH: 'test' }), /^test +0 +revoked/m)
    assert.equal((await tapped(item.tag))['reason'], 'counterfeit')
    await done(title, 1)
    assert.match(await readFile(join(folder, 'taps.csv'), 'utf8'), /^product_id,time,[^]*\n1,20/)
    assert.match(await done(title, 2, { NEXT: 'again' }), /^Batch again made: epoch 1/)
    await until(() => world.components.tagKeys.record('again') !== undefined)
    const batch = world.components.tagKeys.record('again')
    assert.ok(batch)
    item = { ...item, tag: await testTag({ ...batch, demo: true }, { uid: item.tag.uid }) }
    const verified = await tapped(item.tag)
    assert.deepEqual(
      [verified['verified'], (verified['asset'] as { tokenId: string }).tokenId],
      [true, String(item.tokenId)],
    )
  })

  it('takes the roles from a leaked operator key, and finds what it did', { skip: skipCast }, async () => {
    const title = 'A leaked operator key'
    const roles = ['ISSUER_ROLE', 'BINDER_ROLE', 'QA_ROLE', 'GUARDIAN_ROLE', 'RECYCLER_ROLE'] as const
    const send = async (from: Hex, data: Hex) => {
      const hash = (await world.rpc('eth_sendTransaction', [{ from, to: world.contract, data }])) as string
      await until(async () => (await world.rpc('eth_getTransactionReceipt', [hash])) !== null)
      return hash
    }
    const call = (functionName: 'flag' | 'resolve') =>
      encodeFunctionData({ abi: assetRegistryAbi, functionName, args: [item.tokenId, 4, `0x${'00'.repeat(32)}`] })
    for (const role of roles) {
      const name = (await world.rpc('eth_call', [
        { to: world.contract, data: encodeFunctionData({ abi: assetRegistryAbi, functionName: role }) },
        'latest',
      ])) as Hex
      const args = [name, addressOf(leaked)] as const
      await send(addressOf(admin), encodeFunctionData({ abi: assetRegistryAbi, functionName: 'grantRole', args }))
    }
    const since = Number(await world.rpc('eth_blockNumber', [])) + 1
    const theft = await send(addressOf(leaked), call('flag'))
    await until(async () => (await verdictOf(item.tokenId))['flagged'] === true)
    const words = {
      LEAKED: addressOf(leaked),
      NEW: addressOf(successor),
      RPC: world.chainUrl,
      SINCE: String(since),
      SIGNER: `--private-key ${publishedKey(0)}`,
    }
    assert.deepEqual((await done(title, 0, words)).match(/^(?:true|false)$/gm), Array(6).fill('false'))
    await assert.rejects(
      world.rpc('eth_call', [{ from: addressOf(leaked), to: world.contract, data: call('resolve') }, 'latest']),
    )
    await done(title, 1, words)
    const roles_ = await type(title, 2, words)
    assert.ok(
      roles_.out.includes(addressOf(successor)) && !roles_.out.includes(addressOf(leaked)),
      roles_.out + roles_.err,
    )
    await done(title, 3, words)
    const senders = await readFile(join(folder, 'senders.txt'), 'utf8')
    assert.match(senders, new RegExp(`^${theft} ${addressOf(leaked)}$`, 'im'))
    await send(addressOf(successor), call('resolve'))
    await until(async () => (await verdictOf(item.tokenId))['flagged'] === false)
  })

  it('takes a wrong flag back', async () => {
    const title = 'A wrong flag'
    await world.write({ kind: 'flag', tokenId: item.tokenId, bits: 4, reasonHash: noMetadata })
    await until(async () => (await verdictOf(item.tokenId))['flagged'] === true)
    const words = { TOKEN: String(item.tokenId), REASON: 'recall' }
    await world.components.indexer.until(BigInt((await world.rpc('eth_blockNumber', [])) as string), 600_000)
    assert.match(await done(title, 0, words), /FLAGGED[^]*flag/)
    assert.match(await done(title, 1, words), /^flagged +false/m)
    await until(async () => (await verdictOf(item.tokenId))['flagged'] === false)
  })

  it('shows that a provider lies, and the service is right again without it', async () => {
    const title = 'A provider that lies'
    await world.write({ kind: 'flag', tokenId: item.tokenId, bits: 4, reasonHash: noMetadata })
    await until(async () => (await verdictOf(item.tokenId))['flagged'] === true)
    const slot = keccak256(encodeAbiParameters([{ type: 'uint256' }, { type: 'uint256' }], [item.tokenId, 3n]))
    const word = String(await world.rpc('eth_getStorageAt', [world.contract, slot, 'latest'])).slice(2)
    assert.match(word, /^00020405/, 'the record of a flagged item that was bound')
    lies.set(word, `00000002${word.slice(8)}`) // BOUND, without a flag
    const url = await restarted({})
    assert.equal((await verdictOf(item.tokenId, url))['flagged'], false)
    const words = { TOKEN: String(item.tokenId), OTHER_RPC: world.chainUrl }
    const wrong = await type(title, 0, { ...words, BASE_URL: url })
    assert.equal(wrong.exit, 1)
    assert.match(wrong.out, /flagged/)
    const honest = await restarted({ CHAIN_RPC_URLS: world.chainUrl })
    const out = await done(title, 1, { ...words, BASE_URL: honest, CHAIN_RPC_URLS: world.chainUrl })
    assert.match(out, /all agree with the chain[^]*Every field agrees with the chain\./)
    lies.clear()
  })

  it('restores a lost database: the trail is whole, a used link stays used', async () => {
    const title = 'The database is lost'
    const used = item.tag.next()
    const ask = async (url: string) => (await fetch(`${url}/api/verify?${queryOf(used)}`)).text()
    assert.match(await ask(world.url), /"verified":true/)
    const kept = await auditHead(database)
    const backup = join(folder, 'touchstone.backup')
    const env = { BACKUP_KEY: '5e'.repeat(31) + '01' }
    const made = await touchstone(['backup', backup], { ...world.settings, ...env }).ended
    assert.equal(made.exit, 0, made.err)
    for (let entries = 0; entries < 3; entries += 1) await appendAudit(database, '{}')
    const newer = await auditHead(database)
    const next = await openOwnDatabase()
    try {
      const places = { DATABASE_URL: next.url, DATA_DIR: join(folder, 'new') }
      const words = { ...env, BACKUP: backup, NEW_DATABASE_URL: next.url, NEW_DATA_DIR: places.DATA_DIR }
      const lost = { DATABASE_DIRECT_URL: database.url }
      assert.match(await done(title, 0, { ...words, ...lost }), /can be restored[^]*restored, as they were at/)
      assert.match(await done(title, 1, { ...words, ...lost, HEAD: formatHead(kept) }), /each as it was written/)
      const isLost = new RegExp(`entry ${kept.seq + 1n} is wrong or missing, and entries before it may be`)
      assert.match((await type(title, 1, { ...words, ...lost, HEAD: formatHead(newer) })).err, isLost)
      const url = await restarted({ ...places, TAP_WINDOW_SECONDS: '0' })
      assert.match(await ask(url), /"reason":"replayed"/)
      assert.equal((await tapped(item.tag, url))['verified'], true)
      assert.match(await done(title, 2, places), /all agree with the chain/)
    } finally {
      await service?.close(200)
      service = undefined
      await next.close()
    }
  })

  it('has no command that was not typed here', () => {
    const all = [...incidents].flatMap(([title, blocks]) => blocks.map((_, index) => `${title} ${index}`))
    assert.ok(all.length > 10)
    const missing = all.filter((name) => !ran.has(name))
    assert.deepEqual(hasCast ? missing : missing.filter((name) => !name.startsWith('A leaked operator key')), [])
  })
})

/** Listens as a provider that passes everything on, but replaces texts in the answers. */
function startLiar(chain: string, lies: ReadonlyMap<string, string>) {
  return serve((request, response) => {
    void (async () => {
      const body = Buffer.concat(await request.toArray())
      const answer = await fetch(chain, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
      let text = await answer.text()
      for (const [truth, lie] of lies) text = text.replaceAll(truth, lie)
      response.writeHead(200, { 'content-type': 'application/json' }).end(text)
    })().catch(() => response.destroy())
  })
}

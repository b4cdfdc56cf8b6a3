/** GET /api/verify over real HTTP, with a software tag, a real chain and a real ledger (spec §2.7, §4.4, §7). */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { readConfig } from '../../../src/app/config/config.ts'
import { startService } from '../../../src/app/service.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { createLog } from '../../../src/lib/log.ts'
import type { BatchRecord } from '../../../src/tap/keys/batch.ts'
import { createReplayLedger } from '../../../src/tap/replay-ledger.ts'
import { copyEmptyPglite } from '../../support/database/pglite.ts'
import { startFaultWorld } from '../../support/fault-world.ts'
import { boundTag, demoBatchOf } from '../../support/tap/bound.ts'
import { newUid, testTag } from '../../support/tap/tags.ts'
import { until } from '../../support/wait.ts'
import { useOpened } from '../../support/opened.ts'

type Body = Record<string, unknown> & {
  verified?: boolean
  asset?: Record<string, unknown>
  chain?: Record<string, unknown>
  error?: string
}

const world = useOpened(startFaultWorld)

describe('GET /api/verify', () => {
  let batch: BatchRecord
  const presented: string[] = []
  before(async () => {
    batch = await demoBatchOf(world)
  })

  const bound = (name = 'A product') => boundTag(world, batch, { name })
  async function present(
    { picc, cmac }: { picc: string; cmac: string },
    init?: RequestInit,
  ): Promise<{ status: number; body: Body; headers: Headers }> {
    presented.push(picc, cmac)
    const response = await world.get(`/api/verify?picc=${picc}&cmac=${cmac}`, init)
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: (text === '' ? {} : JSON.parse(text)) as Body }
  }
  const verifiedLines = () => world.lines.filter((line) => line.includes('"product verified"')).length

  it('answers a tap of a bound item with the item, and the same tap again within the window', async () => {
    const { tag, tokenId } = await bound('Boots')
    const tap = tag.next()
    const before = verifiedLines()
    const { status, body, headers } = await present(tap)
    assert.equal(status, 200)
    assert.deepEqual(Object.keys(body), ['verified', 'bound', 'uid', 'tapCounter', 'asset', 'metadataHash', 'chain'])
    assert.deepEqual(
      [body.verified, body['bound'], body['uid'], body['tapCounter']],
      [true, true, Buffer.from(tag.uid).toString('hex').toUpperCase(), 1],
    )
    const keys = 'tokenId stateCode lifecycleState flagged timestamp ownerCommitment untrusted'.split(' ')
    assert.deepEqual(Object.keys(body.asset ?? {}), keys)
    assert.deepEqual(
      [body.asset?.['tokenId'], body.asset?.['lifecycleState'], body.asset?.['flagged']],
      [tokenId.toString(), 'BOUND', false],
    )
    assert.match(String(body['metadataHash']), /^0x[0-9a-f]{64}$/)
    assert.deepEqual(Object.keys(body.chain ?? {}), ['id', 'name', 'contract', 'blockNumber', 'blockHash'])
    assert.deepEqual(
      [headers.get('cache-control'), headers.get('referrer-policy'), headers.get('access-control-allow-origin')],
      ['no-store', 'no-referrer', '*'],
    )
    const lower = await present({ picc: tap.picc.toLowerCase(), cmac: tap.cmac.toLowerCase() })
    assert.deepEqual(lower.body, body)
    assert.equal(verifiedLines() - before, 1)
  })

  it('refuses the same tap for ever once its window is over, and a counter that never came before', async () => {
    const { tag } = await bound()
    const [first, second, third] = [tag.next(), tag.next(), tag.next()]
    assert.equal((await present(third)).body.verified, true)
    assert.deepEqual((await present(first)).body, { verified: false, reason: 'replayed' })
    await world.components.database.query("update tap set first_seen = first_seen - interval '301 seconds'")
    for (const tap of [third, second]) {
      const { status, body } = await present(tap)
      assert.deepEqual([status, body], [200, { verified: false, reason: 'replayed' }])
    }
    assert.equal((await present(tag.next())).body.verified, true)
  })

  it('shows a flag at the next tap: the chip is genuine all the same', async () => {
    const { tag, tokenId } = await bound()
    await world.write({ kind: 'flag', tokenId, bits: 0x08, reasonHash: `0x${'0'.repeat(64)}` })
    const { body } = await present(tag.next())
    assert.deepEqual([body.verified, body.asset?.['flagged'], body.asset?.['lifecycleState']], [true, true, 'FLAGGED'])
  })

  it('distinguishes an unbound chip from a counterfeit, and does not explain a counterfeit', async () => {
    const tag = await testTag(batch, { uid: newUid() })
    const tap = tag.next()
    const { status, body } = await present(tap)
    assert.equal(status, 200)
    assert.deepEqual(Object.keys(body), ['verified', 'bound', 'uid', 'tapCounter', 'reason', 'chain'])
    assert.deepEqual([body.verified, body['bound'], body['reason']], [false, false, 'unbound'])
    const last = tap.cmac.at(-1) === '0' ? '1' : '0'
    const zeros = { picc: '0'.repeat(32), cmac: '0'.repeat(16) }
    for (const forged of [
      { ...tap, cmac: tap.cmac.slice(0, -1) + last },
      { ...tap, picc: tap.picc.replace(/^../, 'ff') },
      zeros,
    ]) {
      const answer = await present(forged)
      assert.deepEqual([answer.status, answer.body], [200, { verified: false, reason: 'counterfeit' }])
    }
  })

  const malformed = [
    '',
    '?picc=1',
    '?cmac=0011223344556677',
    `?picc=${'0'.repeat(31)}&cmac=${'0'.repeat(16)}`,
    `?picc=${'g'.repeat(32)}&cmac=${'0'.repeat(16)}`,
    `?picc=${'0'.repeat(32)}&cmac=${'0'.repeat(15)}`,
    `?picc=${'0'.repeat(32)}&picc=${'1'.repeat(32)}&cmac=${'0'.repeat(16)}`,
  ]
  for (const query of malformed) {
    it(`answers 400 and says what to send for «${query.slice(0, 60)}»`, async () => {
      const response = await world.get(`/api/verify${query}`)
      const body = (await response.json()) as Body
      assert.deepEqual([response.status, Object.keys(body), body.verified], [400, ['verified', 'error'], false])
      assert.match(body.error ?? '', /picc|cmac/)
      assert.equal(response.headers.get('access-control-allow-origin'), '*')
    })
  }

  it('consumes nothing for HEAD, OPTIONS and prefetches', async () => {
    const { tag } = await bound()
    const tap = tag.next()
    const count = async () =>
      (await world.components.database.query<{ n: bigint }>('select count(*) as n from tap'))[0]?.n
    const before = await count()
    assert.equal((await present(tap, { method: 'HEAD' })).status, 405)
    assert.equal((await present(tap, { method: 'OPTIONS' })).status, 204)
    for (const header of [{ 'Sec-Purpose': 'prefetch;prerender' }, { Purpose: 'prefetch' }, { 'X-Moz': 'prefetch' }]) {
      const early = await present(tap, { headers: header as Record<string, string> })
      assert.deepEqual([early.status, early.body.verified], [503, false])
    }
    assert.equal(await count(), before)
    assert.equal((await present(tap)).body.verified, true)
  })

  it('answers 502 when the chain is down after a genuine chip; the retry is the same tap and is announced once', async () => {
    const { tag, tokenId } = await bound()
    const tap = tag.next()
    const before = verifiedLines()
    world.faults.set('die')
    const failed = await present(tap)
    assert.deepEqual([failed.status, Object.keys(failed.body)], [502, ['verified', 'error']])
    assert.equal(failed.body.verified, false)
    assert.equal(verifiedLines(), before)
    world.faults.set('none')
    let retried = failed
    await until(async () => (retried = await present(tap)).status !== 502) // the breaker lets a probe through after 5 s
    assert.deepEqual(
      [retried.status, retried.body.verified, retried.body.asset?.['tokenId']],
      [200, true, tokenId.toString()],
    )
    await present(tap)
    assert.equal(verifiedLines() - before, 1)
  })

  it('turns the tags of a revoked batch counterfeit at once, and lets a retired batch verify', async () => {
    const tag = await testTag(await demoBatchOf(world, 'second'))
    await world.components.tags.setBatchStatus('second', 'retired')
    await world.components.tagKeys.writeStatus('second')
    assert.equal((await present(tag.next())).body['reason'], 'unbound')
    // Another instance revokes: only the shared database changes here.
    await world.components.tags.setBatchStatus('second', 'revoked')
    assert.deepEqual((await present(tag.next())).body, { verified: false, reason: 'counterfeit' })
  })

  it('writes no picc, no cmac and no key to its log', () => {
    const text = world.lines.join('\n').toUpperCase()
    const keys = [batch.fileMaster, batch.metaKey ?? new Uint8Array()].map((key) => Buffer.from(key).toString('hex'))
    for (const secret of [...presented, ...keys].filter((value) => /[1-9a-f]/i.test(value)))
      assert.ok(!text.includes(secret.toUpperCase()), 'a secret stands in the log')
    assert.ok(text.includes('TAP REFUSED'))
  })
})

describe('a ledger with taps older than TAP_RETENTION_DAYS', () => {
  it('is pruned by the leader in bounded steps; the counters of the tags stay, so that no pruned tap verifies again', async () => {
    const DATA_DIR = join(world.settings.DATA_DIR, 'old-taps')
    await copyEmptyPglite(join(DATA_DIR, 'store'))
    const uid = newUid()
    const tap = (counter: number) => ({ uid, epoch: 0, counter, picc: new Uint8Array(16), batchId: 'demo' })
    {
      const sql = await openDatabase({ dataDir: join(DATA_DIR, 'store') })
      for (const counter of [1, 2_500, 2_501])
        assert.equal((await createReplayLedger({ sql }).consume(tap(counter))).outcome, 'FRESH')
      await sql.query(
        `insert into tap (uid, epoch, counter, picc) select $1, 0, n, $2 from generate_series(2, 2499) n`,
        [uid, new Uint8Array(16)],
      )
      await sql.query(`update tap set first_seen = first_seen - interval '31 days' where counter <= 2500`)
      await sql.query(`update tap set first_seen = first_seen - interval '29 days' where counter = 2501`)
      await sql.close()
    }
    const config = readConfig({ ...world.settings, DATA_DIR, TAG_KEK: '', TAP_RETENTION_DAYS: '30' })
    await using service = await startService(
      config,
      createLog(() => {}),
    )
    const sql = service.components.database
    await until(async () => (await sql.query('select from tap')).length === 1)
    assert.deepEqual(await sql.query('select counter from tap'), [{ counter: 2_501 }])
    assert.deepEqual(await sql.query('select last_counter from tag where uid = $1', [uid]), [{ last_counter: 2_501 }])
    for (const counter of [1, 2_500, 2_501])
      assert.equal((await createReplayLedger({ sql }).consume(tap(counter))).outcome, 'REPLAY')
  })
})

describe('GET /api/verify without keys', () => {
  it('answers 503 for every cryptogram and 400 for a malformed one', async () => {
    const DATA_DIR = join(world.settings.DATA_DIR, 'without-keys')
    await copyEmptyPglite(join(DATA_DIR, 'store'))
    const config = readConfig({ ...world.settings, DATA_DIR, TAG_KEK: '' })
    await using service = await startService(
      config,
      createLog(() => {}),
    )
    const get = (query: string) => fetch(`${service.urls.verification}/api/verify?${query}`)
    const good = await get(`picc=${'ab'.repeat(16)}&cmac=${'cd'.repeat(8)}`)
    const { error, ...rest } = (await good.json()) as Body
    assert.deepEqual([good.status, typeof error, rest], [503, 'string', { verified: false }])
    assert.equal((await get('picc=1')).status, 400)
  })
})

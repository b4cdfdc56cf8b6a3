import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createAuthenticate } from './sun/authenticate.ts'
import { toHex } from './bytes.ts'
import { createReplayLedger, createTapAnnouncement } from './replay-ledger.ts'
import { createKeyRing } from './keys/batch.ts'
import { createTapBinding, createTapChallenge } from './tap-tokens.ts'
import type { TapPresentation } from './log/recorder.ts'
import { createTagHash } from './tag-hash.ts'
import {
  createVerifyTap,
  type ProductOf,
  type TapAnomaly,
  type TapResult,
  type VerifyTapOptions,
} from './verify-tap.ts'
import { testBatch, testBatches, testTag } from '../../test/support/tap/tags.ts'
import { testDatabases } from '../../test/support/database/databases.ts'
import { useOpened } from '../../test/support/opened.ts'

const tagHash = createTagHash({ scheme: 'hmac', pepper: new Uint8Array(32).fill(1) })
const secret = new Uint8Array(32).fill(2)

describe('verifying a tap', () => {
  const [pglite] = testDatabases()
  assert.ok(pglite)
  const database = useOpened(pglite.open)

  async function world(options: Partial<VerifyTapOptions> = {}) {
    const batch = testBatch({ epoch: 3 })
    const keys = createKeyRing(await testBatches(batch))
    const anomalies: TapAnomaly[] = []
    const verifyTap = createVerifyTap({
      keys,
      authenticate: createAuthenticate({ keys }),
      ledger: createReplayLedger({ sql: database }),
      tagHash,
      onAnomaly: (anomaly) => void anomalies.push(anomaly),
      ...options,
    })
    return { batch, keys, verifyTap, anomalies, tag: await testTag(batch) }
  }

  it('gives uid, counter, epoch, batch and tag hash of a fresh tap, then the same tap and its age', async () => {
    let now = Date.now()
    const ledger = createReplayLedger({ sql: database, now: () => new Date(now) })
    const { tag, verifyTap } = await world({ ledger })
    const tap = tag.next()
    const expected = {
      kind: 'tapped',
      uid: toHex(tag.uid),
      tapCounter: 1,
      epoch: 3,
      batchId: 'test',
      tagHash: tagHash(tag.uid),
      ageSeconds: 0,
      fresh: true,
      isFirstClient: true,
      isAnnounced: false,
    }
    assert.deepEqual(await verifyTap(tap), expected)
    now += 299_000
    assert.deepEqual(await verifyTap({ ...tap, picc: tap.picc.toLowerCase() }), {
      ...expected,
      ageSeconds: 299,
      fresh: false,
      isFirstClient: false,
    })
  })

  it('announces once, also when only the retry is resolved', async () => {
    const { tag, verifyTap } = await world()
    const tap = tag.next()
    assert.equal((await verifyTap(tap)).kind, 'tapped') // the chain lookup failed: 502, nothing announced
    const retry = await verifyTap(tap)
    assert.ok(retry.kind === 'tapped' && !retry.fresh)
    assert.equal(await createTapAnnouncement(database)({ ...retry, tokenId: 1n }), true)
    const reload = await verifyTap(tap)
    assert.ok(reload.kind === 'tapped')
    assert.equal(await createTapAnnouncement(database)({ ...reload, tokenId: 1n }), false)
  })

  it('announces the product of a tap that counts, and looks up no other', async () => {
    const { tag, verifyTap } = await world({ challenge: createTapChallenge({ secret }) })
    const asked: string[] = []
    const productOf: ProductOf = async (of) => {
      asked.push(of.tagHash)
      return { tokenId: 1n, tagHash: of.tagHash }
    }
    assert.equal((await verifyTap({ picc: '', cmac: '' }, productOf)).kind, 'malformed')
    assert.equal((await verifyTap({ ...tag.next(), cmac: '0'.repeat(16) }, productOf)).kind, 'counterfeit')
    const challenged = await verifyTap(tag.next(), productOf)
    assert.ok(challenged.kind === 'challenge')
    const answer = { ...tag.next(), challengeToken: challenged.token }
    const judged = await verifyTap({ ...answer, consume: false }, productOf)
    assert.ok(judged.kind === 'tapped' && !judged.isAnnounced)
    assert.deepEqual(asked, [])
    const tapped = await verifyTap(answer, productOf)
    assert.ok(tapped.kind === 'tapped' && tapped.fresh && tapped.isAnnounced)
    assert.deepEqual(asked, [tagHash(tag.uid)])
  })

  it('makes no bind token for a tap that is only judged', async () => {
    const { tag, verifyTap } = await world({ binding: createTapBinding({ secret, windowSeconds: 300 }) })
    const tap = tag.next()
    const judged = await verifyTap({ ...tap, consume: false })
    assert.ok(judged.kind === 'tapped' && judged.fresh && judged.bindToken === undefined)
    const tapped = await verifyTap(tap)
    assert.ok(tapped.kind === 'tapped' && tapped.fresh && tapped.bindToken !== undefined)
  })

  it('names malformed parameters before anything else', async () => {
    const { verifyTap, tag } = await world({ keys: createKeyRing([]) })
    const { picc, cmac } = tag.next()
    const cases: readonly [Parameters<typeof verifyTap>[0], RegExp][] = [
      [{ picc: undefined, cmac: undefined }, /picc or cmac parameters are missing/],
      [{ picc, cmac: undefined }, /picc or cmac parameters are missing/],
      [{ picc: '', cmac }, /picc or cmac parameters are missing/],
      [{ picc: [], cmac }, /missing/],
      [{ picc: [picc, picc], cmac }, /picc parameter is given more than once/],
      [{ picc, cmac: [cmac, cmac] }, /cmac parameter is given more than once/],
      [{ picc: picc.slice(1), cmac }, /picc parameter must be 32 hex digits/],
      [{ picc: `${picc}0`, cmac }, /32 hex/],
      [{ picc: `${picc.slice(1)}G`, cmac }, /32 hex/],
      [{ picc, cmac: `${cmac}00` }, /cmac parameter must be 16 hex digits/],
      [{ picc, cmac: ` ${cmac.slice(1)}` }, /16 hex/],
    ]
    for (const [request, error] of cases) {
      const result = await verifyTap(request)
      assert.equal(result.kind, 'malformed')
      assert.match(result.kind === 'malformed' ? result.error : '', error)
    }
    assert.deepEqual(await verifyTap({ picc: [picc], cmac: [cmac] }), { kind: 'not_configured' })
  })

  it('distinguishes counterfeit from replayed, and consumes neither', async () => {
    const { tag, verifyTap, keys, anomalies } = await world()
    const [first, second] = [tag.next(), tag.next()]
    const spliced = await verifyTap({ picc: second.picc, cmac: first.cmac })
    assert.deepEqual(spliced, { kind: 'counterfeit', reason: 'bad_cmac', batchId: 'test' })
    assert.equal((await verifyTap(second)).kind, 'tapped')
    assert.deepEqual(await verifyTap(first), { kind: 'replayed' })
    assert.deepEqual(anomalies, [{ kind: 'unseen_lower', batchId: 'test', counter: 1, lastCounter: 2 }])
    keys.replace(keys.candidates().map((batch) => ({ ...batch, status: 'revoked' })))
    assert.deepEqual(await verifyTap(second), { kind: 'counterfeit', reason: 'revoked_batch', batchId: 'test' })
  })

  it('is counterfeit where keys here explain why, although those of another batch are not here', async () => {
    const { tag, verifyTap, keys } = await world({ missing: async () => ['other'] })
    const [first, second] = [tag.next(), tag.next()]
    assert.deepEqual(await verifyTap({ picc: second.picc, cmac: first.cmac }), { kind: 'not_configured' })
    keys.replace(keys.candidates().map((batch) => ({ ...batch, status: 'revoked' })))
    assert.deepEqual(await verifyTap(second), { kind: 'counterfeit', reason: 'revoked_batch', batchId: 'test' })
  })

  it('obeys a revocation that only the database knows', async () => {
    const { tag, verifyTap } = await world()
    const tap = tag.next()
    assert.equal((await verifyTap(tap)).kind, 'tapped')
    await database.query(`insert into tag_batch (id, epoch, status) values ('test', 3, 'revoked')`)
    assert.deepEqual(await verifyTap(tap), { kind: 'counterfeit', reason: 'revoked_batch', batchId: 'test' })
    await database.query(`delete from tag_batch where id = 'test'`)
  })

  it('with TAP_BIND repeats a tap for its first presenter only', async () => {
    const { tag, verifyTap } = await world({
      binding: createTapBinding({ secret, windowSeconds: 300 }),
      mustBind: true,
    })
    const tap = tag.next()
    const first = await verifyTap(tap)
    assert.ok(first.kind === 'tapped' && first.bindToken !== undefined)
    assert.deepEqual(await verifyTap(tap), { kind: 'replayed' })
    const repeat = await verifyTap({ ...tap, bindTokens: [first.bindToken.token] })
    assert.ok(repeat.kind === 'tapped' && !repeat.fresh && repeat.bindToken === undefined)
    assert.deepEqual(
      await verifyTap({ ...tag.next(), bindTokens: [first.bindToken.token] }).then(({ kind }) => kind),
      'tapped',
    )
  })

  it('recognises the first client of a tap by its token, or within seconds: a browser may open a link twice at once', async () => {
    let now = Date.now()
    const ledger = createReplayLedger({ sql: database, now: () => new Date(now) })
    const { tag, verifyTap } = await world({ ledger, binding: createTapBinding({ secret, windowSeconds: 300 }) })
    const tap = tag.next()
    const open = async (bindTokens: readonly string[] = []) => {
      const found = await verifyTap({ ...tap, bindTokens })
      assert.ok(found.kind === 'tapped')
      return found
    }
    const [first, second] = [await open(), await open()]
    assert.deepEqual([first.isFirstClient, second.isFirstClient], [true, true])
    assert.deepEqual(second.bindToken, first.bindToken)
    now += 60_000
    const other = await open(['another'])
    assert.deepEqual([other.isFirstClient, other.bindToken], [false, undefined])
    const again = await open([first.bindToken?.token ?? ''])
    assert.deepEqual([again.isFirstClient, again.bindToken], [true, undefined])
  })

  it('with TAP_CHALLENGE wants a second tap soon after the first', async () => {
    let time = 0
    const { tag, verifyTap } = await world({ challenge: createTapChallenge({ secret, now: () => time }) })
    const [harvested, first] = [tag.next(), tag.next()]
    const asked = await verifyTap(first)
    assert.ok(asked.kind === 'challenge' && asked.seconds === 30)
    assert.equal((await verifyTap({ ...first, challengeToken: asked.token })).kind, 'challenge')
    assert.equal((await verifyTap({ ...harvested, challengeToken: asked.token })).kind, 'replayed')
    const second = tag.next()
    assert.equal((await verifyTap({ ...second, challengeToken: asked.token })).kind, 'tapped')
    assert.equal((await verifyTap({ ...second, challengeToken: asked.token })).kind, 'tapped')
    const skipped = tag.next()
    assert.equal(
      (await verifyTap({ ...tag.next(), challengeToken: asked.token })).kind,
      'challenge',
      'not the next count',
    )
    assert.equal((await verifyTap({ ...skipped, challengeToken: asked.token })).kind, 'replayed')
    time = 31_000
    assert.equal((await verifyTap({ ...tag.next(), challengeToken: asked.token })).kind, 'challenge')
  })

  it('records what was presented, with the counter before a jump, and nothing where no tap is consumed', async () => {
    const records: TapPresentation[] = []
    const { batch, tag, verifyTap } = await world({ record: (presentation) => void records.push(presentation) })
    const far = await testTag(batch, { uid: tag.uid, counter: 60 })
    const forged = { picc: 'ab'.repeat(16), cmac: 'cd'.repeat(8) }
    for (const tap of [tag.next(), far.next(), forged]) {
      const kept = records.length
      await verifyTap({ ...tap, consume: false })
      assert.deepEqual(records.splice(kept), [])
      await verifyTap({ ...tap, country: 'FR' })
      await verifyTap(tap)
    }
    const genuine = { tagHash: tagHash(tag.uid), country: 'FR', outcome: 'FRESH' } as const
    const again = { country: null, outcome: 'REPEATED' } as const
    const first = { ...genuine, counter: 1, jumpFrom: null }
    const jumped = { ...genuine, counter: 61, jumpFrom: 1 }
    const none = { tagHash: null, counter: null, jumpFrom: null, outcome: 'COUNTERFEIT_SUSPECTED' } as const
    assert.deepEqual(records, [
      first,
      { ...first, ...again },
      jumped,
      { ...jumped, ...again, jumpFrom: null },
      { ...none, country: 'FR' },
      { ...none, country: null },
    ])
  })

  it('never reveals a key, a block or a MAC', async () => {
    const { tag, verifyTap, batch, anomalies } = await world()
    const [first, second] = [tag.next(), tag.next()]
    const results: TapResult[] = []
    for (const request of [first, { ...first, cmac: second.cmac }, second, first, { ...second, picc: 'x'.repeat(40) }])
      results.push(await verifyTap(request))
    const said = JSON.stringify([results, anomalies]).toUpperCase()
    const { metaKey = new Uint8Array(0), fileMaster } = batch
    for (const hidden of [first.picc, first.cmac, second.picc, second.cmac, toHex(metaKey), toHex(fileMaster)])
      assert.ok(!said.includes(hidden))
  })
})

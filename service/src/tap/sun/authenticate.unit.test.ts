import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { hexToBytes } from '@noble/hashes/utils.js'
import fc from 'fast-check'
import { createAesKey, embeddedKey } from './aes.ts'
import { type Authenticated, createAuthenticate, createFileKeyCache } from './authenticate.ts'
import { toHex } from '../bytes.ts'
import { batchHint, type BatchStatus, createKeyRing, type TagBatch } from '../keys/batch.ts'
import { createSearchBudget, type SearchBudget } from './search-budget.ts'
import { readPicc } from './sun.ts'
import { testBatch, testBatches, testTag, testTemplate, verifier } from '../../../test/support/tap/tags.ts'

const reasonOf = (found: Authenticated) => (found.genuine ? 'genuine' : found.reason)

/** Forty batches, more than are likely. */
const manyBatches = () => Array.from({ length: 40 }, (_, index) => testBatch({ id: `batch-${index}` }))
const forgedMac = '0102030405060708'

function direct(meta: string, file: string, macInput: TagBatch['macInput'] = 'empty'): TagBatch {
  return {
    id: 'direct',
    epoch: 0,
    status: 'active',
    systemId: 'x',
    fileKeyNo: 2,
    macInput,
    derivation: 'direct',
    meta: embeddedKey(hexToBytes(meta)),
    fileMaster: embeddedKey(hexToBytes(file)),
  }
}

const zeros = '0'.repeat(32)
const zeroBatch = direct(zeros, zeros)

describe('published taps', () => {
  const cases: readonly [string, TagBatch, string, string, string, number][] = [
    ['AN12196 §3.4.4', zeroBatch, 'EF963FF7828658A599F3041510671E88', '94EED9EE65337086', '04DE5F1EACC040', 61],
    [
      'Bolt Card',
      direct('0c3b25d92b38ae443229dd59ad34b85d', 'b45775776cb224c75bcde7ca3704e933'),
      '4E2E289D945A66BB13377A728884E867',
      'E19CCB1FED8892CE',
      '04996C6A926980',
      3,
    ],
  ]
  for (const [name, batch, picc, cmac, uid, counter] of cases) {
    it(`${name} is genuine, in both cases of hex`, async () => {
      for (const tap of [
        { picc, cmac },
        { picc: picc.toLowerCase(), cmac: cmac.toLowerCase() },
      ]) {
        const found = await verifier([batch])(tap)
        assert.ok(found.genuine)
        assert.deepEqual([toHex(found.uid), found.counter], [uid, counter])
      }
    })
  }

  it('AN12196 without a mirrored counter (tag 87) is refused although its MAC is right', async () => {
    const tap = { picc: 'BFA4ECDA959BB0B6A05A594250E9C22A', cmac: 'B1EE1FD5DC0D9654' }
    assert.equal(reasonOf(await verifier([zeroBatch])(tap)), 'counter_not_mirrored')
    assert.equal(reasonOf(await verifier([zeroBatch])({ ...tap, cmac: 'B1EE1FD5DC0D9655' })), 'bad_picc_tag')
  })

  it('AN12196 without a mirrored UID (tag 40) is refused although its MAC is right', async () => {
    const tap = { picc: '6AE2FC322BDA1DEE03C0141CBC6F5180', cmac: '8415EA4B86F5D7D5' }
    const block = readPicc(createAesKey(new Uint8Array(16)).ecbDecrypt(hexToBytes(tap.picc)))
    assert.equal(block.form === 'counter only' && block.counter, 5)
    assert.equal(reasonOf(await verifier([zeroBatch])(tap)), 'uid_not_mirrored')
    assert.equal(reasonOf(await verifier([{ ...zeroBatch, derivation: 'an10922' }])(tap)), 'bad_picc_tag')
  })
})

describe('a genuine tap', () => {
  it('verifies for 100 random tags, any counter, both MAC inputs and both cases of hex', async () => {
    for (const macInput of ['empty', 'picc'] as const) {
      const batch = testBatch({ macInput })
      const verify = verifier(await testBatches(batch))
      const counters = fc.oneof(
        fc.constantFrom(0, 1, 0xfe, 0xff, 0xffff, 0xfeffff, 0xfffffe),
        fc.integer({ min: 0, max: 0xfffffe }),
      )
      await fc.assert(
        fc.asyncProperty(
          fc.uint8Array({ minLength: 6, maxLength: 6 }),
          counters,
          fc.boolean(),
          async (tail, counter, lower) => {
            const tag = await testTag(batch, { uid: Uint8Array.from([4, ...tail]), counter })
            const { picc, cmac } = tag.next()
            const found = await verify(lower ? { picc: picc.toLowerCase(), cmac: cmac.toLowerCase() } : { picc, cmac })
            assert.ok(found.genuine)
            assert.deepEqual([toHex(found.uid), found.counter, found.batch.id], [toHex(tag.uid), counter + 1, 'test'])
          },
        ),
        { numRuns: 100 },
      )
    }
  })

  it('verifies for every address template that can be laid out', async () => {
    const word = fc.stringMatching(/^[a-z0-9._~-]{1,12}$/)
    const pair = fc.tuple(fc.stringMatching(/^[a-bd-oq-z]{1,6}$/), word).map(([name, value]) => `${name}=${value}`)
    const shape = fc.record({
      path: fc.array(word, { maxLength: 5 }),
      before: fc.array(pair, { maxLength: 2 }),
      after: fc.array(pair, { maxLength: 2 }),
    })
    for (const macInput of ['empty', 'picc'] as const) {
      const batch = testBatch({ macInput })
      const verify = verifier(await testBatches(batch))
      await fc.assert(
        fc.asyncProperty(shape, fc.boolean(), async ({ path, before, after }, macFirst) => {
          const tap = macFirst && macInput === 'empty' ? ['cmac={cmac}', 'picc={picc}'] : ['picc={picc}', 'cmac={cmac}']
          const query = [...before, ...tap, ...after].join('&')
          const template = testTemplate(batch, `https://verify.example.com/${path.join('/')}?${query}`)
          const found = await verify((await testTag(batch, { template })).next())
          assert.ok(found.genuine && found.counter === 1)
        }),
      )
    }
  })

  it('is none any more with any bit flipped', async () => {
    for (const macInput of ['empty', 'picc'] as const) {
      const batch = testBatch({ macInput })
      const authenticate = createAuthenticate({ keys: createKeyRing(await testBatches(batch)) })
      const { picc, cmac } = (await testTag(batch)).next()
      for (let bit = 0; bit < 192; bit++) {
        const whole = hexToBytes(picc + cmac)
        whole[bit >> 3] = (whole[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        const found = await authenticate(whole.subarray(0, 16), whole.subarray(16))
        assert.equal(found.genuine, false, `bit ${bit}`)
      }
    }
  })

  it('is none with the two keys swapped, another master, another system id or another slot', async () => {
    const batch = testBatch()
    const tap = (await testTag(batch)).next()
    const { metaKey = new Uint8Array(16), fileMaster } = batch
    const others = [
      { ...batch, metaKey: fileMaster, fileMaster: metaKey },
      { ...batch, fileMaster: metaKey },
      { ...batch, systemId: 'another' },
      { ...batch, fileKeyNo: 3 },
      { ...batch, macInput: 'picc' as const },
      testBatch(),
    ]
    for (const other of others) {
      const found = await verifier(await testBatches(other))(tap)
      assert.ok(['bad_cmac', 'unknown_batch', 'bad_picc_tag'].includes(reasonOf(found)), reasonOf(found))
    }
  })

  it('is none when block and MAC come from two taps or two tags', async () => {
    const batch = testBatch()
    const verify = verifier(await testBatches(batch))
    const [tag, other] = [await testTag(batch), await testTag(batch)]
    const [first, second, foreign] = [tag.next(), tag.next(), other.next()]
    assert.equal(reasonOf(await verify(first)), 'genuine')
    assert.equal(reasonOf(await verify({ picc: first.picc, cmac: second.cmac })), 'bad_cmac')
    assert.equal(reasonOf(await verify({ picc: second.picc, cmac: first.cmac })), 'bad_cmac')
    assert.equal(reasonOf(await verify({ picc: first.picc, cmac: foreign.cmac })), 'bad_cmac')
  })
})

describe('what is counterfeit', () => {
  it('has a reason for the log', async () => {
    const batch = testBatch()
    const verify = verifier(await testBatches(batch))
    const { picc, cmac } = (await testTag(batch)).next()
    assert.equal(reasonOf(await verify({ picc: zeros, cmac: zeros.slice(16) })), 'placeholders')
    assert.equal(reasonOf(await verify({ picc, cmac: zeros.slice(16) })), 'placeholders')
    assert.equal(reasonOf(await verifier([])({ picc, cmac })), 'unknown_batch')
    const meta = createAesKey(batch.metaKey ?? new Uint8Array(16))
    const other = toHex(meta.encryptBlock(hexToBytes(`D7${zeros.slice(2)}`)))
    assert.equal(reasonOf(await verify({ picc: other, cmac })), 'unknown_batch')
  })

  it('includes counter 0, which no chip ever shows', async () => {
    const batch = testBatch()
    const tag = await testTag(batch, { counter: -1 })
    assert.equal(reasonOf(await verifier(await testBatches(batch))(tag.next())), 'counter_zero')
  })
})

describe('a forged tap', () => {
  it('has a wrong MAC for the log, even where another key reads the block in another form', async () => {
    const batch = testBatch()
    const { picc } = (await testTag(batch)).next()
    const reads = (key: Uint8Array) => createAesKey(key).ecbDecrypt(hexToBytes(picc))
    let other = randomBytes(16)
    while (reads(other)[0] !== 0x87 || reads(other)[1] === 4) other = randomBytes(16)
    const verify = verifier([...(await testBatches(batch)), direct(toHex(other), zeros)])
    const found = await verify({ picc, cmac: forgedMac })
    assert.deepEqual(found, { genuine: false, reason: 'bad_cmac', batchId: batch.id })
  })

  it('pays for the batches that the likely ones leave, once each', async () => {
    const records = manyBatches()
    const keys = createKeyRing(await testBatches(...records))
    const spent: number[] = []
    const verify = verifier(keys, {
      budget: { spend: (units) => spent.push(units) > 0, refund: () => assert.fail('a forged tap pays') },
    })
    const { picc } = (await testTag(records[2] ?? testBatch())).next()
    const found = await verify({ picc, cmac: forgedMac }, { hint: batchHint('batch-2') })
    assert.equal(reasonOf(found), 'bad_cmac')
    const likely = keys.likely(batchHint('batch-2'))
    // Another key reads the block as a PICC block by chance.
    const isPaid = (batch: TagBatch) => {
      const block = readPicc(batch.meta.ecbDecrypt(hexToBytes(picc)) as Uint8Array)
      return block.form !== 'other' && (block.uid?.[0] !== 4 || !likely.includes(batch))
    }
    const paid = keys.candidates().filter(isPaid)
    assert.deepEqual(spent, [40 - likely.length, ...paid.map(() => 50)])
  })

  it('of the only batch is counterfeit, whatever is left of the budget', async () => {
    const batch = testBatch()
    const budget = { spend: () => assert.fail('there is nothing to search'), refund: () => {} }
    const verify = verifier(await testBatches(batch), { budget })
    const { picc } = (await testTag(batch)).next()
    const options = { hint: batchHint(batch.id), maySearch: false }
    assert.equal(reasonOf(await verify({ picc, cmac: forgedMac }, options)), 'bad_cmac')
  })
})

describe('batches', () => {
  it('verify while active or retired, not once revoked', async () => {
    const batch = testBatch()
    const batches = await testBatches(batch)
    const keys = createKeyRing(batches)
    const verify = verifier(keys)
    const setStatus = (status: BatchStatus) => keys.replace(batches.map((known) => ({ ...known, status })))
    const tag = await testTag(batch)
    const next = () => verify(tag.next())
    assert.equal(reasonOf(await next()), 'genuine')
    setStatus('retired')
    assert.equal(reasonOf(await next()), 'genuine')
    setStatus('revoked')
    assert.equal(reasonOf(await next()), 'revoked_batch')
    setStatus('active')
    assert.equal(reasonOf(await next()), 'genuine')
  })

  it('are found among 300', async () => {
    const records = Array.from({ length: 300 }, (_, index) => testBatch({ id: `batch-${index}`, epoch: index }))
    const verify = verifier(await testBatches(...records))
    for (const index of [299, 0, 150, 7]) {
      const record = records[index] ?? testBatch()
      const tag = await testTag(record)
      const found = await verify(tag.next())
      assert.ok(found.genuine)
      assert.deepEqual([found.batch.id, found.batch.epoch], [record.id, index])
    }
  })

  it('are found by the hint of the link or by a recent tap, without a search', async () => {
    const records = manyBatches()
    const verify = verifier(await testBatches(...records))
    const record = records[39] ?? testBatch()
    const tag = await testTag(record)
    const next = (options: Parameters<typeof verify>[1]) => verify(tag.next(), options)
    const maySearch = false
    assert.equal(reasonOf(await next({ maySearch })), 'not_searched')
    assert.equal(reasonOf(await next({ maySearch, hint: batchHint('batch-38') })), 'not_searched')
    assert.equal(reasonOf(await next({ maySearch, hint: batchHint(record.id) })), 'genuine')
    assert.equal(reasonOf(await next({ maySearch })), 'genuine', 'a recent batch')
    const other = await testTag(records[20] ?? testBatch())
    const found = await verify(other.next(), { hint: batchHint('batch-3') })
    assert.equal(found.genuine && found.batch.id, 'batch-20', 'a wrong hint costs a search and nothing else')
  })

  it('are searched until forged taps have spent the budget; genuine ones spend none', async () => {
    const records = manyBatches()
    const keys = createKeyRing(await testBatches(...records))
    let at = 0
    const budget = createSearchBudget({ perSecond: 1_000, burst: 1_000, now: () => at })
    // Hits are not counted: every tap of the last batch needs a search.
    const verify = verifier({ ...keys, hit: () => {} }, { budget })
    const tag = await testTag(records[39] ?? testBatch())
    const genuine = async (hint?: string) => reasonOf(await verify(tag.next(), { hint }))
    const forged = async () => reasonOf(await verify({ picc: toHex(randomBytes(16)), cmac: toHex(randomBytes(8)) }))
    for (let count = 0; count < 200; count++) assert.equal(await genuine(), 'genuine')
    let searches = 0
    while ((await forged()) !== 'not_searched') searches += 1
    assert.ok(searches <= 42, `${searches} searches of 24 units each`)
    assert.equal(await genuine(), 'not_searched')
    assert.equal(await genuine(batchHint('batch-39')), 'genuine')
    at += 1_000
    assert.equal(await genuine(), 'genuine')
  })

  it('with a common metaRead key are distinguished by the MAC', async () => {
    const [first, second] = [testBatch({ id: 'first' }), testBatch({ id: 'second' })]
    const sharing = { ...second, ...(first.metaKey && { metaKey: first.metaKey }) }
    const verify = verifier(await testBatches(first, sharing))
    for (const record of [first, sharing]) {
      const found = await verify((await testTag(record)).next())
      assert.equal(found.genuine && found.batch.id, record.id)
    }
  })

  it('are not searched on when a MAC cannot be paid, and a genuine tap gets back exactly what it paid', async () => {
    const records = manyBatches()
    const keys = { ...createKeyRing(await testBatches(...records)), hit: () => {} }
    const tap = (await testTag(records[39] ?? testBatch())).next()
    const found = (budget: SearchBudget) => verifier(keys, { budget })(tap).then(reasonOf)
    const poor = { spend: (units: number) => units !== 50, refund: () => assert.fail('nothing was found') }
    assert.equal(await found(poor), 'not_searched')
    let spent = 0
    const rich = { spend: (units: number) => (spent += units) > 0, refund: (units: number) => void (spent -= units) }
    assert.equal(await found(rich), 'genuine')
    assert.equal(spent, 0)
  })

  it('have tags with a UID of another maker too, whose MAC and slow key are paid before they are checked', async () => {
    const batch = testBatch()
    for (const [derivation, unpaid] of [
      ['an10922', 50],
      ['sdm-backend-legacy', 0],
    ] as const) {
      const own = { ...batch, derivation }
      const tap = (await testTag(own, { uid: Uint8Array.from([5, 1, 2, 3, 4, 5, 6]) })).next()
      const batches = await testBatches(own, ...manyBatches())
      const budget = { spend: (units: number) => units !== unpaid, refund: () => assert.fail('nothing was found') }
      assert.equal(reasonOf(await verifier(batches, { budget })(tap)), 'not_searched', derivation)
      assert.equal(reasonOf(await verifier(batches)(tap)), 'genuine', derivation)
    }
  })

  it('may keep their keys elsewhere: promises work as well', async () => {
    const batch = testBatch()
    const [local] = await testBatches(batch)
    assert.ok(local)
    let derived = 0
    const macs: Uint8Array[] = []
    const later = (key: TagBatch['meta']) => ({
      ecbDecrypt: async (block: Uint8Array) => key.ecbDecrypt(block),
      cmac: async (message: Uint8Array) => {
        derived += 1
        const mac = await key.cmac(message)
        macs.push(mac)
        return mac
      },
    })
    const verify = verifier([{ ...local, meta: later(local.meta), fileMaster: later(local.fileMaster) }])
    const tag = await testTag(batch)
    for (let count = 0; count < 3; count++) assert.equal(reasonOf(await verify(tag.next())), 'genuine')
    assert.equal(derived, 1, 'the remote master derives once per tag')
    assert.ok(
      macs[0]?.every((byte) => byte === 0),
      'what was derived is overwritten',
    )
    const meta = createAesKey(batch.metaKey ?? new Uint8Array(16))
    const other = toHex(meta.encryptBlock(hexToBytes(`D7${zeros.slice(2)}`)))
    assert.equal(reasonOf(await verify({ picc: other, cmac: forgedMac })), 'unknown_batch')
  })
})

describe('cached file keys', () => {
  it('are only those of tags with a valid MAC, and of masters elsewhere: others derive in less time than keeping takes', async () => {
    const batch = testBatch()
    const [loaded] = await testBatches(batch)
    assert.ok(loaded)
    const { ecbDecrypt, cmac: cmacOf } = loaded.fileMaster
    for (const [fileMaster, kept] of [[{ ecbDecrypt, cmac: cmacOf }, 1] as const, [loaded.fileMaster, 0] as const]) {
      const fileKeys = createFileKeyCache()
      const verify = verifier([{ ...loaded, fileMaster }], { fileKeys })
      const tap = (await testTag(batch)).next()
      await verify({ ...tap, cmac: forgedMac })
      assert.equal(fileKeys.size(), 0)
      assert.equal(reasonOf(await verify(tap)), 'genuine')
      assert.equal(fileKeys.size(), kept)
    }
  })

  it('leave oldest first, overwritten', () => {
    const master = embeddedKey(new Uint8Array(16))
    const fileKeys = createFileKeyCache(2)
    const key = createAesKey(new Uint8Array(16).fill(9))
    const mac = toHex(key.cmac(new Uint8Array(16)))
    fileKeys.set(master, Uint8Array.of(1), key)
    for (const uid of [2, 3]) fileKeys.set(master, Uint8Array.of(uid), createAesKey(new Uint8Array(16)))
    assert.equal(fileKeys.size(), 2)
    assert.notEqual(toHex(key.cmac(new Uint8Array(16))), mac)
  })

  it('leave, overwritten, with the master that they were derived from', async () => {
    const [kept, replaced] = [embeddedKey(new Uint8Array(16).fill(5)), embeddedKey(new Uint8Array(16).fill(6))]
    const fileKeys = createFileKeyCache()
    const [first, second, late] = [7, 8, 9].map((fill) => createAesKey(new Uint8Array(16).fill(fill)))
    assert.ok(first && second && late)
    const block = new Uint8Array(16)
    const macs = [first, second, late].map((key) => toHex(key.cmac(block)))
    fileKeys.set(kept, Uint8Array.of(1), first)
    fileKeys.set(replaced, Uint8Array.of(1), second)
    replaced.destroy?.()
    fileKeys.set(replaced, Uint8Array.of(2), late) // its derivation was under way
    assert.equal(fileKeys.size(), 1)
    assert.equal(fileKeys.get(kept, Uint8Array.of(1)), first)
    assert.equal(fileKeys.get(replaced, Uint8Array.of(1)), undefined)
    assert.deepEqual(
      [first, second, late].map((key, index) => toHex(key.cmac(block)) === macs[index]),
      [true, false, false],
    )
  })
})

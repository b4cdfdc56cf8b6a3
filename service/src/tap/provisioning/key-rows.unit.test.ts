import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hexToBytes } from '@noble/hashes/utils.js'
import { toHex } from '../bytes.ts'
import { keyRow, keyRowFormats, keyRows, renderKeyRows, deriveTagKeys } from './key-rows.ts'
import { embeddedKey } from '../sun/aes.ts'
import { createSoftwareTag } from './software-tag.ts'
import { parametersOf, testBatch, testBatches, testTemplate, verifier } from '../../../test/support/tap/tags.ts'

const uid = hexToBytes('04782E21801D80')
const masters = { app: embeddedKey(new Uint8Array(16).fill(0x5a).map((byte, index) => byte ^ index)) }

describe('a key row', () => {
  const batch = testBatch({ epoch: 259 })
  const template = testTemplate(batch)

  it('holds everything a station needs, and keys only when they are to be revealed', async () => {
    const row = await keyRow({ batch, uid, template })
    assert.deepEqual(row, {
      uid: '04782E21801D80',
      batchId: 'test',
      epoch: 259,
      keyVersion: 3,
      keys: null,
      url: template.url,
      ndef: toHex(template.ndef),
      piccOffset: 42,
      macInputOffset: 80,
      macOffset: 80,
      settings: '4000E0C1FF122A0000500000500000',
    })
    const revealed = await keyRow({ batch, uid, template, masters, reveal: true })
    assert.equal(new Set(revealed.keys).size, 5)
    await assert.rejects(keyRow({ batch, uid, template, reveal: true }), RangeError)
  })

  it('is one of many, between which other work of the process has its turn', async () => {
    let turns = 0
    const takeTurn = () => void (turns++, (turn = setImmediate(takeTurn)))
    let turn = setImmediate(takeTurn)
    const options = { batch, uid, template, masters, reveal: true }
    const rows = await keyRows(Array.from({ length: 1_000 }, () => options)).finally(() => clearImmediate(turn))
    assert.deepEqual(rows, Array(1_000).fill(await keyRow(options)))
    assert.ok(turns >= 10, `${turns} turns`)
  })

  it('makes a tag that this verifier takes for genuine, with either MAC input', async () => {
    for (const macInput of ['empty', 'picc'] as const) {
      const own = testBatch({ macInput })
      const row = await keyRow({ batch: own, uid, template: testTemplate(own), masters, reveal: true })
      const [, metaKey, fileKey] = (row.keys ?? []).map(hexToBytes)
      assert.ok(metaKey && fileKey)
      const tag = createSoftwareTag({
        uid,
        metaKey,
        fileKey,
        ndef: hexToBytes(row.ndef),
        settings: hexToBytes(row.settings),
      })
      const found = await verifier(await testBatches(own))(parametersOf(tag.tap()))
      assert.ok(found.genuine && found.counter === 1)
    }
  })

  it('differs by tag in all keys but metaRead', async () => {
    const [one, other] = [
      await deriveTagKeys(batch, uid, masters),
      await deriveTagKeys(batch, hexToBytes('04782E21801D81'), masters),
    ]
    assert.deepEqual(
      one.map((key, slot) => toHex(key) === toHex(other[slot] ?? key)),
      [false, true, false, false, false],
    )
  })

  it('of a Bolt Card batch has the keys of that scheme', async () => {
    const { metaKey: _own, ...rest } = testBatch()
    const boltcard = {
      ...rest,
      derivation: 'boltcard',
      derivationVersion: 1,
      fileMaster: hexToBytes('00000000000000000000000000000001'),
    } as const
    const keys = await deriveTagKeys(boltcard, hexToBytes('04a39493cc8680'))
    assert.equal(toHex(keys[2] ?? uid), 'F4B404BE700AB285E333E32348FA3D3B')
  })
})

describe('the formats of key rows', () => {
  it('show keys when revealed and only then', async () => {
    const batch = testBatch()
    const template = testTemplate(batch)
    const hidden = await keyRow({ batch, uid, template })
    const shown = await keyRow({ batch, uid, template, masters, reveal: true })
    for (const format of keyRowFormats) {
      const [without, within] = [renderKeyRows([hidden], format), renderKeyRows([shown], format)]
      for (const key of shown.keys ?? ['']) {
        assert.ok(within.includes(key), `${format} lacks a key`)
        assert.ok(!without.includes(key), `${format} shows a key`)
      }
      assert.ok(without.includes('04782E21801D80'))
    }
  })

  it('are a JSON array, lines under a head, or commands with key 0 last', async () => {
    const batch = testBatch()
    const row = await keyRow({ batch, uid, template: testTemplate(batch) })
    assert.deepEqual(JSON.parse(renderKeyRows([row, row], 'json')), [row, row])
    const [head, line, ...more] = renderKeyRows([row], 'csv').split('\n')
    assert.equal(
      head,
      'uid,batch,epoch,key_version,key0,key1,key2,key3,key4,url,ndef,picc_offset,mac_input_offset,mac_offset,settings',
    )
    assert.equal(line?.split(',').length, head?.split(',').length)
    assert.deepEqual(more, [''])
    const commands = renderKeyRows([row], 'apdu').trim().split('\n')
    assert.match(commands[1] ?? '', /^send 00A4040C07/)
    assert.match(commands.at(-1) ?? '', /^change-key 0 version 0 \(not revealed\)$/)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hexToBytes } from '@noble/hashes/utils.js'
import { toHex } from '../bytes.ts'
import { createDemoTag } from './software-tag.ts'
import { newUid, parametersOf, testBatch, testTag, testTemplate } from '../../../test/support/tap/tags.ts'

const selectApplication = hexToBytes('00A4040C07D276000085010100')
const selectCapabilities = hexToBytes('00A4000C02E103')
const selectAddress = hexToBytes('00A4000C02E104')
const readAll = hexToBytes('00B0000000')

describe('the software tag', () => {
  const batch = testBatch()

  it('answers as a Type 4 tag does: application, capabilities, length, record', async () => {
    const tag = await testTag(batch)
    assert.equal(toHex(tag.transmit(selectAddress)), '6A82')
    assert.equal(toHex(tag.transmit(readAll)), '6986')
    assert.equal(toHex(tag.transmit(selectApplication)), '9000')
    assert.equal(toHex(tag.transmit(selectCapabilities)), '9000')
    assert.match(toHex(tag.transmit(hexToBytes('00B000000F'))), /^001720010000FF0406E10401000000.*9000$/)
    assert.equal(tag.counter(), 0)
    assert.equal(toHex(tag.transmit(selectAddress)), '9000')
    const length = toHex(tag.transmit(hexToBytes('00B0000002')))
    assert.equal(length, `00${(testTemplate(batch).ndef.length - 2).toString(16).toUpperCase()}9000`)
    assert.equal(toHex(tag.transmit(hexToBytes('00E0000000'))), '6D00')
    assert.equal(toHex(tag.transmit(hexToBytes('00B0010001'))), '6B00')
  })

  it('counts once for all reads that follow a select, with the same bytes', async () => {
    const tag = await testTag(batch)
    for (const command of [selectApplication, selectAddress]) tag.transmit(command)
    const whole = toHex(tag.transmit(readAll))
    assert.equal(toHex(tag.transmit(readAll)), whole)
    const half = toHex(tag.transmit(hexToBytes('00B0002A20')))
    assert.ok(whole.includes(half.slice(0, -4)))
    assert.equal(tag.counter(), 1)
    tag.transmit(selectAddress)
    assert.notEqual(toHex(tag.transmit(readAll)), whole)
    assert.equal(tag.counter(), 2)
  })

  it('uses new padding each time', async () => {
    const uid = newUid()
    const first = (await testTag(batch, { uid })).next()
    const second = (await testTag(batch, { uid })).next()
    assert.notEqual(first.picc, second.picc)
    assert.equal(first.cmac, second.cmac)
  })

  it('reads FFFFFF once and then fails for ever', async () => {
    const tag = await testTag(batch, { counter: 0xfffffe })
    assert.match(tag.next().picc, /^[0-9A-F]{32}$/)
    assert.equal(tag.counter(), 0xffffff)
    assert.equal(tag.tap(), null)
    assert.equal(tag.tap(), null)
    assert.equal(tag.counter(), 0xffffff)
  })

  it('exists for demo batches only', async () => {
    const batchInUse = { ...batch, demo: false }
    await assert.rejects(createDemoTag({ batch: batchInUse, uid: newUid(), template: testTemplate(batch) }), RangeError)
  })

  it('keeps the rest of the address', async () => {
    const template = testTemplate(
      batch,
      'https://verify.example.com/01/09506000134352/21/A1?b=7&picc={picc}&cmac={cmac}&x=1',
    )
    const address = (await testTag(batch, { template })).tap() ?? ''
    const { picc, cmac } = parametersOf(address)
    assert.equal(address, `https://verify.example.com/01/09506000134352/21/A1?b=7&picc=${picc}&cmac=${cmac}&x=1`)
  })
})

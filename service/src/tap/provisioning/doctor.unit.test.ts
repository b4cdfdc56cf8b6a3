import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hexToBytes } from '@noble/hashes/utils.js'
import { createAesKey, embeddedKey } from '../sun/aes.ts'
import type { BatchRecord } from '../keys/batch.ts'
import { toHex } from '../bytes.ts'
import { deriveFileKey } from '../keys/derivations.ts'
import { diagnose } from './doctor.ts'
import { createSoftwareTag } from './software-tag.ts'
import { newUid, testBatch, testBatches, testTag, testTemplate } from '../../../test/support/tap/tags.ts'

const zeroKey = new Uint8Array(16)
const uid = newUid()

async function fileKey(batch: BatchRecord, change: Partial<BatchRecord> = {}): Promise<Uint8Array> {
  const other = { ...batch, ...change }
  return (await deriveFileKey({ ...other, fileMaster: embeddedKey(other.fileMaster) }, uid)) ?? other.fileMaster
}

/** The address of a tag that was made with something wrong. */
async function misread(
  batch: BatchRecord,
  wrong: { metaKey?: Uint8Array; fileKey?: Uint8Array; settings?: string; ndef?: string } = {},
) {
  const template = testTemplate(batch)
  const tag = createSoftwareTag({
    uid,
    metaKey: wrong.metaKey ?? batch.metaKey ?? zeroKey,
    fileKey: wrong.fileKey ?? (await fileKey(batch)),
    ndef: wrong.ndef === undefined ? template.ndef : hexToBytes(wrong.ndef),
    settings: wrong.settings === undefined ? template.settings : hexToBytes(wrong.settings),
  })
  return tag.tap() ?? ''
}

async function codes(
  address: string,
  batches: readonly BatchRecord[],
  uids?: readonly Uint8Array[],
): Promise<string[]> {
  const { findings } = await diagnose(address, { batches: await testBatches(...batches), ...(uids && { uids }) })
  return findings.map(({ code }) => code)
}

describe('tag doctor', () => {
  const batch = testBatch({ id: 'ours' })
  const { metaKey = zeroKey, fileMaster } = batch

  it('finds nothing wrong with a good address and says what it is', async () => {
    for (const macInput of ['empty', 'picc'] as const) {
      const own = testBatch({ id: 'own', macInput })
      const tag = await testTag(own, { counter: 6 })
      const diagnosis = await diagnose(tag.tap() ?? '', { batches: await testBatches(batch, own) })
      assert.deepEqual(diagnosis, {
        ok: true,
        findings: [],
        tagByte: 'C7',
        uid: toHex(tag.uid),
        counter: 7,
        batchId: 'own',
        macInput,
        scheme: 'an10922',
        fileKeyNo: 2,
      })
    }
  })

  it('names swapped keys, with the UID also when they are diversified', async () => {
    const swapped = await misread(batch, { metaKey: await fileKey(batch), fileKey: metaKey })
    assert.deepEqual(await codes(swapped, [batch], [newUid(), uid]), ['swapped_keys'])
    assert.deepEqual(await codes(swapped, [batch]), ['unknown_keys'])
    const direct = { ...batch, derivation: 'direct' } as const
    assert.deepEqual(await codes(await misread(direct, { metaKey: fileMaster, fileKey: metaKey }), [direct]), [
      'swapped_keys',
    ])
    assert.deepEqual(await codes(await misread(batch, { fileKey: metaKey }), [batch]), ['one_key_twice'])
  })

  it('names factory and published keys, in one slot or both', async () => {
    assert.deepEqual(await codes(await misread(batch, { fileKey: zeroKey }), [batch]), ['factory_keys'])
    assert.deepEqual(await codes(await misread(batch, { metaKey: zeroKey }), [batch]), ['factory_keys'])
    assert.deepEqual(await codes(await misread(batch, { metaKey: zeroKey, fileKey: zeroKey }), [batch]), [
      'factory_keys',
    ])
    const published = hexToBytes('00112233445566778899AABBCCDDEEFF')
    assert.deepEqual(await codes(await misread(batch, { fileKey: published }), [batch]), ['published_keys'])
  })

  it('names another derivation, slot, batch or MAC input', async () => {
    for (const derivation of ['tagit-sdm', 'boltcard', 'sdm-backend', 'sdm-backend-legacy', 'direct'] as const) {
      const address = await misread(batch, { fileKey: await fileKey(batch, { derivation }) })
      assert.deepEqual(await codes(address, [batch]), ['wrong_derivation'], derivation)
    }
    assert.deepEqual(await codes(await misread(batch, { fileKey: await fileKey(batch, { fileKeyNo: 3 }) }), [batch]), [
      'wrong_slot',
    ])
    const other = testBatch({ id: 'other' })
    assert.deepEqual(await codes(await misread(batch, { fileKey: await fileKey(other) }), [batch, other]), [
      'mixed_batches',
    ])
    assert.deepEqual(await codes(await misread(batch, { settings: '4000E0C1FF122A00002A0000500000' }), [batch]), [
      'wrong_mac_input',
    ])
  })

  it('names mirrors that were left out', async () => {
    assert.deepEqual(await codes(await misread(batch, { settings: '4000E081FF122A0000500000500000' }), [batch]), [
      'counter_not_mirrored',
    ])
    const direct = { ...batch, derivation: 'direct' } as const
    const withoutUid = { settings: '4000E041FF122A0000500000500000' }
    assert.deepEqual(await codes(await misread(direct, { ...withoutUid, fileKey: fileMaster }), [direct]), [
      'uid_not_mirrored',
    ])
    assert.deepEqual(await codes(await misread(batch, withoutUid), [batch], [uid]), ['uid_not_mirrored'])
  })

  it('names a placeholder that is too short or too long', async () => {
    const { ndef } = testTemplate(batch)
    const cut = (zeros: number, macOffset: number) => {
      const text = Buffer.from(ndef)
        .toString('latin1')
        .replace(`picc=${'0'.repeat(32)}`, `picc=${'0'.repeat(zeros)}`)
      const file = Buffer.from(text, 'latin1')
      file.writeUInt16BE(file.length - 2, 0)
      file[4] = file.length - 6
      const offset = macOffset.toString(16).padStart(2, '0')
      return misread(batch, { ndef: file.toString('hex'), settings: `4000E0C1FF122A0000${offset}0000${offset}0000` })
    }
    assert.match(await cut(30, 78), /picc=[0-9A-F]{32}mac=[0-9A-F]{16}$/)
    assert.deepEqual(await codes(await cut(30, 78), [batch]), ['placeholder_length'])
    assert.deepEqual(await codes(await cut(31, 79), [batch]), ['placeholder_length'])
    assert.deepEqual(await codes(await cut(34, 82), [batch]), ['placeholder_length'])
    const { findings } = await diagnose(await cut(30, 78), { batches: await testBatches(batch) })
    assert.match(findings[0]?.text ?? '', /30 characters instead of 32/)
  })

  it('names offsets that do not fit the address', async () => {
    for (const settings of [
      '4000E0C1FF12290000500000500000',
      '4000E0C1FF122C0000500000500000',
      '4000E0C1FF122A00004F00004F0000',
    ]) {
      assert.deepEqual(await codes(await misread(batch, { settings }), [batch]), ['wrong_offsets'], settings)
    }
  })

  it('names what the text alone shows', async () => {
    const good = (await testTag(batch)).tap() ?? ''
    assert.deepEqual(await codes(testTemplate(batch).url, [batch]), ['placeholders'])
    assert.deepEqual(await codes(good.replace('picc=', 'e=').replace('cmac=', 'c='), [batch]), ['parameter_names'])
    assert.deepEqual(await codes('https://verify.example.com/api/verify', [batch]), ['nothing_mirrored'])
    for (const other of ['', 'picc', `https://a.example/${'0'.repeat(3000)}`])
      assert.deepEqual(await codes(other, [batch]), ['not_an_address'])
  })

  it('names an altered address, strange keys, a revoked batch and counter 0', async () => {
    const good = (await testTag(batch)).tap() ?? ''
    const altered = good.slice(0, -1) + (good.endsWith('A') ? 'B' : 'A')
    assert.deepEqual(await codes(altered, [batch]), ['unknown_file_key'])
    assert.deepEqual(await codes(good, [testBatch({ id: 'strange' })]), ['unknown_keys'])
    assert.deepEqual(await codes(good, [{ ...batch, status: 'revoked' }]), ['revoked_batch'])
    assert.deepEqual(await codes((await testTag(batch, { counter: -1 })).tap() ?? '', [batch]), ['counter_zero'])
  })

  it('reveals no key and no computed MAC', async () => {
    const good = (await testTag(batch)).tap() ?? ''
    const altered = `${good.slice(0, -16)}${'0123456789ABCDEF'}`
    const said = JSON.stringify([
      await diagnose(good, { batches: await testBatches(batch) }),
      await diagnose(altered, { batches: await testBatches(batch) }),
    ])
    for (const hidden of [toHex(metaKey), toHex(fileMaster), toHex(await fileKey(batch)), good.slice(-16)])
      assert.ok(!said.includes(hidden))
    assert.equal(createAesKey(metaKey).ecbDecrypt(zeroKey).length, 16)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hexToBytes } from '@noble/hashes/utils.js'
import { createAesKey, embeddedKey } from '../sun/aes.ts'
import { importedBatch, type BatchRecord } from '../keys/batch.ts'
import { toHex } from '../bytes.ts'
import { deriveFileKey } from '../keys/derivations.ts'
import { diagnoseTagUrl } from './doctor.ts'
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

type Among = { of?: BatchRecord; among?: readonly BatchRecord[]; uids?: readonly Uint8Array[] }

async function codes(address: string, batches: readonly BatchRecord[], uids: readonly Uint8Array[] = []) {
  const { findings } = await diagnoseTagUrl(address, { batches: await testBatches(...batches), uids })
  return findings.map(({ code }) => code)
}

describe('tag doctor', () => {
  const batch = testBatch({ id: 'ours' })
  const { metaKey = zeroKey, fileMaster } = batch
  const direct = { ...batch, derivation: 'direct' } as const

  /** Asserts the one finding about a tag of the batch that was made with something wrong. */
  async function names(
    code: string,
    wrong: Parameters<typeof misread>[1],
    { of = batch, among = [of], uids = [] }: Among = {},
  ) {
    assert.deepEqual(await codes(await misread(of, wrong), among, uids), [code])
  }

  it('finds nothing wrong with a good address and says what it is', async () => {
    for (const macInput of ['empty', 'picc'] as const) {
      const own = testBatch({ id: 'own', macInput })
      const tag = await testTag(own, { counter: 6 })
      const diagnosis = await diagnoseTagUrl(tag.tap() ?? '', { batches: await testBatches(batch, own) })
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
    const swapped = { metaKey: await fileKey(batch), fileKey: metaKey }
    await names('swapped_keys', swapped, { uids: [newUid(), uid] })
    await names('unknown_keys', swapped)
    await names('swapped_keys', { metaKey: fileMaster, fileKey: metaKey }, { of: direct })
    await names('one_key_twice', { fileKey: metaKey })
  })

  it('names factory and published keys, in one slot or both', async () => {
    for (const wrong of [{ fileKey: zeroKey }, { metaKey: zeroKey }, { metaKey: zeroKey, fileKey: zeroKey }])
      await names('factory_keys', wrong)
    await names('published_keys', { fileKey: hexToBytes('00112233445566778899AABBCCDDEEFF') })
  })

  it('names another derivation, slot, batch or MAC input', async () => {
    for (const derivation of ['tagit-sdm', 'boltcard', 'sdm-backend', 'sdm-backend-legacy', 'direct'] as const)
      await names('wrong_derivation', { fileKey: await fileKey(batch, { derivation }) })
    await names('wrong_slot', { fileKey: await fileKey(batch, { fileKeyNo: 3 }) })
    const other = testBatch({ id: 'other' })
    await names('mixed_batches', { fileKey: await fileKey(other) }, { among: [batch, other] })
    await names('wrong_mac_input', { settings: '4000E0C1FF122A00002A0000500000' })
  })

  it('names mirrors that were left out', async () => {
    await names('counter_not_mirrored', { settings: '4000E081FF122A0000500000500000' })
    const withoutUid = { settings: '4000E041FF122A0000500000500000' }
    await names('uid_not_mirrored', { ...withoutUid, fileKey: fileMaster }, { of: direct })
    await names('uid_not_mirrored', withoutUid, { uids: [uid] })
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
    for (const [zeros, macOffset] of [
      [30, 78],
      [31, 79],
      [34, 82],
    ] as const)
      assert.deepEqual(await codes(await cut(zeros, macOffset), [batch]), ['placeholder_length'])
    const { findings } = await diagnoseTagUrl(await cut(30, 78), { batches: await testBatches(batch) })
    assert.match(findings[0]?.text ?? '', /30 characters instead of 32/)
  })

  it('names offsets that do not fit the address', async () => {
    for (const settings of [
      '4000E0C1FF12290000500000500000',
      '4000E0C1FF122C0000500000500000',
      '4000E0C1FF122A00004F00004F0000',
    ])
      await names('wrong_offsets', { settings })
  })

  it('names a parameter that is there twice, and still says whose tap it is', async () => {
    const address = await misread(batch)
    for (const twice of [`${address}&cmac=0102030405060708`, address.replace('?', '?picc=&'), `${address}&picc=1`])
      assert.deepEqual(await codes(twice, [batch]), ['repeated_parameter'], twice)
    const { uid: found } = await diagnoseTagUrl(`${address}&cmac=0102030405060708`, {
      batches: await testBatches(batch),
    })
    assert.equal(found, toHex(uid))
  })

  it('reads the query as the verifier does', async () => {
    const good = (await testTag(batch)).tap() ?? ''
    const { picc = '' } = Object.fromEntries(new URL(good).searchParams)
    const encoded = `%${picc.charCodeAt(0).toString(16)}${picc.slice(1)}`
    for (const read of [`${good}&x=${'y'.repeat(3_500)}`, good.replace(picc, encoded), good.replace('picc', '%70icc')])
      assert.deepEqual(await codes(read, [batch]), [], read)
    assert.deepEqual(await codes(good.replace('?', '??'), [batch]), ['parameter_names'])
    assert.deepEqual(await codes(`${good}&x=${'y'.repeat(4_000)}`, [batch]), ['not_an_address'])
  })

  it('looks for the tap in a long path only so far', async () => {
    const runs = `${'AB'.repeat(40)}/`.repeat(1_000)
    assert.deepEqual(await codes(`https://a.example/${runs}`, []), ['wrong_offsets', 'unknown_keys'])
  })

  it('passes over a master of another length than a key of the chip has', async () => {
    const scheme = { derivation: 'sdm-backend' } as const
    const long = importedBatch({ id: 'long', demo: true, scheme, master: new Uint8Array(32).fill(7) }) ?? assert.fail()
    const strange = (await testTag(testBatch({ id: 'strange' }))).tap() ?? ''
    for (const uids of [[], [uid]]) assert.deepEqual(await codes(strange, [long, batch], uids), ['unknown_keys'])
    const own = (await testTag(long)).tap() ?? ''
    assert.deepEqual(await codes(own, [batch, long]), [])
  })

  it('names what the text alone shows', async () => {
    const good = (await testTag(batch)).tap() ?? ''
    assert.deepEqual(await codes(testTemplate(batch).url, [batch]), ['placeholders'])
    assert.deepEqual(await codes(good.replace('picc=', 'e=').replace('cmac=', 'c='), [batch]), ['parameter_names'])
    assert.deepEqual(await codes('https://verify.example.com/api/verify', [batch]), ['nothing_mirrored'])
    assert.deepEqual(await codes(`https://a.example/?picc=${'0'.repeat(20)}`, [batch]), ['placeholders'])
    for (const other of ['', 'picc', `https://a.example/?${'0'.repeat(4_001)}`])
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
      await diagnoseTagUrl(good, { batches: await testBatches(batch) }),
      await diagnoseTagUrl(altered, { batches: await testBatches(batch) }),
    ])
    for (const hidden of [toHex(metaKey), toHex(fileMaster), toHex(await fileKey(batch)), good.slice(-16)])
      assert.ok(!said.includes(hidden))
    assert.equal(createAesKey(metaKey).ecbDecrypt(zeroKey).length, 16)
  })
})

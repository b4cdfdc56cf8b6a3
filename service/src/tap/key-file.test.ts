import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { batchFromJson, batchToJson, embeddedBatch, newBatch, publicSettings, type BatchRecord } from './batch.ts'
import { hexOf } from './bytes.ts'
import {
  openKeys,
  readAppKeyFile,
  readKeyFile,
  sealKeys,
  writeAppKeyFile,
  writeKeyFile,
  type Opened,
} from './key-file.ts'
import { isPublishedKey, publishedKeys } from './published-keys.ts'
import { testBatch } from '../../test/_tags.ts'

const folder = mkdtempSync(join(tmpdir(), 'touchstone-keys-'))
after(() => rmSync(folder, { recursive: true }))
const kek = Uint8Array.from(randomBytes(32))
const errorOf = (opened: Opened<unknown>) => (opened.ok ? 'none' : opened.error)
const inUse = (id: string, change: Partial<BatchRecord> = {}): BatchRecord => ({
  ...testBatch({ id, demo: false }),
  ...change,
})

describe('the key file', () => {
  it('gives back what was written, and no batch where there is no file', async () => {
    const path = join(folder, 'keys.json')
    assert.deepEqual(await readKeyFile(path, { kek }), { ok: true, value: [] })
    const batches = [inUse('a'), inUse('b', { epoch: 2, macInput: 'picc', hints: ['shop.example'], status: 'retired' })]
    assert.equal((await writeKeyFile(path, batches, { kek })).ok, true)
    assert.deepEqual(await readKeyFile(path, { kek }), { ok: true, value: batches })
  })

  it('is readable by its owner only and leaves nothing beside it, also when it is replaced', async () => {
    const path = join(folder, 'private.json')
    writeFileSync(path, 'old', { mode: 0o644 })
    await writeKeyFile(path, [inUse('a')], { kek })
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.includes('tmp')),
      [],
    )
  })

  it('keeps the old file when the new one is refused', async () => {
    const path = join(folder, 'kept.json')
    await writeKeyFile(path, [inUse('a')], { kek })
    const before = readFileSync(path, 'utf8')
    assert.match(
      errorOf(await writeKeyFile(path, [inUse('a', { fileMaster: new Uint8Array(16) })], { kek })),
      /factory key/,
    )
    assert.equal(readFileSync(path, 'utf8'), before)
  })

  it('shows no key and no batch in its text', () => {
    const batch = inUse('secret-batch')
    const text = sealKeys([batch], kek)
    assert.deepEqual(Object.keys(JSON.parse(text) as object), [
      'touchstone',
      'version',
      'algorithm',
      'nonce',
      'tag',
      'sealed',
    ])
    assert.ok(!text.includes('secret-batch') && !text.toUpperCase().includes(hexOf(batch.fileMaster)))
  })

  it('opens with the right key and every byte in place, else says one sentence', () => {
    const text = sealKeys([inUse('a')], kek)
    assert.equal(openKeys(text, { kek }).ok, true)
    assert.match(
      errorOf(openKeys(text, { kek: Uint8Array.from(randomBytes(32)) })),
      /another TAG_KEK, or it is damaged/,
    )
    const envelope = JSON.parse(text) as Record<string, string>
    for (const part of ['nonce', 'tag', 'sealed']) {
      const value = envelope[part] ?? ''
      const altered = JSON.stringify({ ...envelope, [part]: (value.startsWith('A') ? 'B' : 'A') + value.slice(1) })
      assert.match(errorOf(openKeys(altered, { kek })), /damaged/)
    }
    for (const other of [
      '',
      '{}',
      'null',
      text.replace('"version": 1', '"version": 2'),
      text.replace('tag-keys', 'tag-app-keys'),
    ]) {
      assert.match(errorOf(openKeys(other, { kek })), /damaged/)
    }
  })

  it('wants a key encryption key of 32 random bytes', async () => {
    assert.match(errorOf(openKeys('', { kek: new Uint8Array(16).fill(1) })), /32 bytes/)
    assert.match(errorOf(await writeKeyFile(join(folder, 'x'), [], { kek: new Uint8Array(32) })), /random/)
  })

  it('refuses factory, published and demo keys, unless it is a demo', () => {
    const published = publishedKeys()
    assert.ok(published.length >= 10)
    for (const key of published) {
      for (const batch of [inUse('a', { fileMaster: key }), inUse('a', { metaKey: key })]) {
        assert.match(errorOf(openKeys(sealKeys([batch], kek), { kek })), /factory key or a published/)
        assert.equal(openKeys(sealKeys([batch], kek), { kek, demo: true }).ok, true)
      }
    }
    const demo = testBatch({ id: 'd' })
    assert.match(errorOf(openKeys(sealKeys([demo], kek), { kek })), /for demos/)
    assert.equal(openKeys(sealKeys([demo], kek), { kek, demo: true }).ok, true)
  })

  it('refuses two batches of one id, and two lives under the same keys', () => {
    const batch = inUse('a')
    assert.match(errorOf(openKeys(sealKeys([batch, inUse('a')], kek), { kek })), /Two batches have the id a/)
    assert.match(
      errorOf(openKeys(sealKeys([batch, { ...batch, id: 'b', epoch: 1 }], kek), { kek })),
      /a and b have the same keys/,
    )
  })

  it('refuses a batch that is not legal', () => {
    const batch = batchToJson(inUse('a'))
    const changes = [
      { id: 'a b' },
      { epoch: -1 },
      { status: 'lost' },
      { systemId: '' },
      { fileKeyNo: 5 },
      { macInput: 'enc' },
      { derivation: 'own' },
    ]
    const more: object[] = [
      { metaKey: undefined },
      { metaKey: '00' },
      { fileMaster: 'xyz' },
      { fileMaster: '00'.repeat(32) },
      { hints: 'a' },
      { extra: 1 },
      { constructor: 1 },
    ]
    for (const change of [...changes, ...more])
      assert.equal(batchFromJson({ ...batch, ...change }), null, JSON.stringify(change))
    assert.notEqual(batchFromJson(batch), null)
    for (const other of [null, 7, 'a', []]) assert.equal(batchFromJson(other), null)
    const broken = sealKeys([{ ...inUse('a'), epoch: -1 }], kek)
    assert.match(errorOf(openKeys(broken, { kek })), /not legal/)
  })
})

describe('application masters', () => {
  it('are in a file of their own, which the verifier cannot take for its keys', async () => {
    const path = join(folder, 'app.json')
    assert.deepEqual(await readAppKeyFile(path, { kek }), { ok: true, value: new Map() })
    const made = newBatch({ id: 'a' })
    assert.ok(made)
    const masters = new Map([['a', made.appMaster]])
    assert.equal((await writeAppKeyFile(path, masters, { kek })).ok, true)
    assert.deepEqual(await readAppKeyFile(path, { kek }), { ok: true, value: masters })
    assert.match(errorOf(await readKeyFile(path, { kek })), /damaged/)
    assert.match(errorOf(await readAppKeyFile(path, { kek: Uint8Array.from(randomBytes(32)) })), /damaged/)
  })
})

describe('a new batch', () => {
  it('has three independent random keys and shows none in its settings', () => {
    const made = newBatch({ id: 'a', epoch: 4 })
    assert.ok(made)
    const keys = [made.record.metaKey ?? new Uint8Array(0), made.record.fileMaster, made.appMaster].map(hexOf)
    assert.equal(new Set(keys).size, 3)
    const shown = JSON.stringify(publicSettings(made.record))
    assert.match(shown, /"epoch":4/)
    for (const key of keys) assert.ok(!shown.toUpperCase().includes(key))
    assert.ok(![made.record.fileMaster, made.appMaster].some(isPublishedKey))
  })

  it('is null for settings that are not legal', () => {
    for (const options of [
      { id: '' },
      { id: 'x/y' },
      { id: 'a', epoch: 0.5 },
      { id: 'a', systemId: 'seventeen letters' },
    ])
      assert.equal(newBatch(options), null)
  })

  it('of a scheme with one master derives metaRead from it', async () => {
    const { metaKey: _none, ...record } = inUse('a', { derivation: 'tagit-sdm' })
    const batch = await embeddedBatch(record)
    const block = new Uint8Array(16)
    assert.deepEqual(await batch.meta.ecbDecrypt(block), await batch.fileMaster.ecbDecrypt(block))
    await assert.rejects(embeddedBatch({ ...record, derivation: 'direct' }), RangeError)
  })
})

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { batchFromJson, batchToJson } from './batch.ts'
import { seal } from '../../lib/sealed/file.ts'
import { toHex } from '../bytes.ts'
import { KeyFileError, openKeys, readKeyFile, sealKeys, writeKeyFile } from './key-file.ts'
import { publishedKeys } from './published.ts'
import { testFolder } from '../../../test/support/folder.ts'
import { batchInUse, testBatch } from '../../../test/support/tap/tags.ts'

const folder = testFolder()
const kek = Uint8Array.from(randomBytes(32))
const fails = (pattern: RegExp) => (error: unknown) => error instanceof KeyFileError && pattern.test(error.message)

describe('the key file', () => {
  it('gives back what was written, and no batch where there is no file', async () => {
    const path = join(folder, 'keys.json')
    assert.deepEqual(await readKeyFile(path, { kek }), [])
    const batches = [
      batchInUse('a', { brands: ['A', 'B'] }),
      batchInUse('b', { epoch: 2, macInput: 'picc', status: 'retired' }),
    ]
    await writeKeyFile(path, batches, { kek })
    assert.deepEqual(await readKeyFile(path, { kek }), batches)
  })

  it('is readable by its owner only and leaves nothing beside it, also when it is replaced', async () => {
    const path = join(folder, 'private.json')
    writeFileSync(path, 'old', { mode: 0o644 })
    await writeKeyFile(path, [batchInUse('a')], { kek })
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.includes('tmp')),
      [],
    )
  })

  it('keeps the old file when the new one is refused', async () => {
    const path = join(folder, 'kept.json')
    await writeKeyFile(path, [batchInUse('a')], { kek })
    const before = readFileSync(path, 'utf8')
    const refused = writeKeyFile(path, [batchInUse('a', { fileMaster: new Uint8Array(16) })], { kek })
    await assert.rejects(refused, fails(/factory key/))
    assert.equal(readFileSync(path, 'utf8'), before)
  })

  it('shows no key and no batch in its text', () => {
    const batch = batchInUse('secret-batch')
    const text = sealKeys([batch], kek)
    assert.deepEqual(Object.keys(JSON.parse(text) as object), [
      'touchstone',
      'version',
      'algorithm',
      'nonce',
      'tag',
      'sealed',
    ])
    assert.ok(!text.includes('secret-batch') && !text.toUpperCase().includes(toHex(batch.fileMaster)))
  })

  it('opens with the right key and every byte in place, else says one sentence', async () => {
    const text = sealKeys([batchInUse('a')], kek)
    await openKeys(text, { kek })
    await assert.rejects(
      openKeys(text, { kek: Uint8Array.from(randomBytes(32)) }),
      fails(/another TAG_KEK, or it is damaged/),
    )
    const envelope = JSON.parse(text) as Record<string, string>
    for (const part of ['nonce', 'tag', 'sealed']) {
      const value = envelope[part] ?? ''
      const altered = JSON.stringify({ ...envelope, [part]: (value.startsWith('A') ? 'B' : 'A') + value.slice(1) })
      await assert.rejects(openKeys(altered, { kek }), fails(/damaged/))
    }
    for (const other of [
      '',
      '{}',
      'null',
      text.replace('"version": 1', '"version": 2'),
      text.replace('tag-keys', 'tag-app-keys'),
    ]) {
      await assert.rejects(openKeys(other, { kek }), fails(/damaged/))
    }
  })

  it('needs a key encryption key of 32 random bytes', async () => {
    await assert.rejects(openKeys('', { kek: new Uint8Array(16).fill(1) }), fails(/32 bytes/))
    await assert.rejects(writeKeyFile(join(folder, 'x'), [], { kek: new Uint8Array(32) }), fails(/random/))
  })

  it('refuses factory, published and demo keys, unless it is a demo', async () => {
    const published = publishedKeys()
    assert.ok(published.length >= 10)
    for (const key of published) {
      for (const batch of [batchInUse('a', { fileMaster: key }), batchInUse('a', { metaKey: key })]) {
        await assert.rejects(openKeys(sealKeys([batch], kek), { kek }), fails(/factory key or a published/))
        await openKeys(sealKeys([batch], kek), { kek, demo: true })
      }
    }
    const demo = testBatch({ id: 'd' })
    await assert.rejects(openKeys(sealKeys([demo], kek), { kek }), fails(/for demos/))
    await openKeys(sealKeys([demo], kek), { kek, demo: true })
  })

  it('refuses two batches of one id, and two batches under the same keys', async () => {
    const batch = batchInUse('a')
    await assert.rejects(openKeys(sealKeys([batch, batchInUse('a')], kek), { kek }), fails(/Two batches have the id a/))
    await assert.rejects(
      openKeys(sealKeys([batch, { ...batch, id: 'b', epoch: 1 }], kek), { kek }),
      fails(/a and b have the same keys/),
    )
  })

  it('refuses two batches with one metaRead key whose masters are in a token', async () => {
    const batch = { ...batchInUse('a'), fileMaster: null }
    const sealed = sealKeys([batch, { ...batch, id: 'b' }], kek)
    await assert.rejects(openKeys(sealed, { kek }), fails(/a and b have the same keys/))
  })

  it('refuses two batches under the same keys that are written in other words', async () => {
    const { systemId, ...batch } = batchInUse('a')
    const hex = Buffer.from(systemId).toString('hex')
    const inHex = (digits: string) =>
      ({ ...batch, id: digits, derivation: 'an10922-systemid', systemId: `0x${digits}` }) as const
    const aid = `D276000085010102${hex}`
    for (const duplicates of [
      [{ ...batch, systemId }, inHex(aid)],
      [inHex('ABCD'), inHex('abcd')],
      [inHex('414243'), { ...inHex('41'), systemId: 'ABC' }],
    ])
      await assert.rejects(openKeys(sealKeys(duplicates, kek), { kek }), fails(/have the same keys/))
    await openKeys(sealKeys([inHex('ABCD'), inHex('ABCE')], kek), { kek })
  })

  it('refuses a batch that is not legal', async () => {
    await assert.rejects(openKeys(seal('tag-keys', { batches: {} }, kek), { kek }), fails(/a batch that is not legal/))
    const batch = batchToJson(batchInUse('a'))
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
      { fileMaster: null, derivation: 'direct' },
      { fileMaster: '00'.repeat(32) },
      { hints: 'a' },
      { extra: 1 },
      { constructor: 1 },
    ]
    for (const change of [...changes, ...more])
      assert.equal(batchFromJson({ ...batch, ...change }), null, JSON.stringify(change))
    assert.notEqual(batchFromJson(batch), null)
    for (const other of [null, 7, 'a', []]) assert.equal(batchFromJson(other), null)
    const broken = sealKeys([{ ...batchInUse('a'), epoch: -1 }], kek)
    await assert.rejects(openKeys(broken, { kek }), fails(/not legal/))
  })
})

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { testFolder } from '../../../test/support/folder.ts'
import { ServiceError } from '../errors.ts'
import { createPrivateFile, fileFault, isDraft, removeDrafts, seal, unseal, writePrivateFile } from './file.ts'

const [folder, elsewhere] = [testFolder(), testFolder()]

describe('private files', () => {
  it('lose the drafts that a killed process left, and no other file', async () => {
    mkdirSync(join(folder, 'chips'))
    symlinkSync(elsewhere, join(folder, 'link'))
    const hours = (count: number) => new Date(Date.now() - count * 3_600_000)
    for (const [name, age] of [
      ['tag-keys.json.0123456789ab.tmp', 2],
      ['chips/04A1.json.0123456789ab.tmp', 2],
      ['tag-keys.json.ba9876543210.tmp', 0],
      ['tag-keys.json', 2],
      ['notes.tmp', 2],
      ['link/tag-keys.json.0123456789ab.tmp', 2],
    ] as const) {
      writeFileSync(join(folder, name), 'x')
      utimesSync(join(folder, name), hours(age), hours(age))
    }
    assert.deepEqual(await removeDrafts(folder), { removed: 2, failed: null })
    assert.deepEqual(readdirSync(folder).toSorted(), [
      'chips',
      'link',
      'notes.tmp',
      'tag-keys.json',
      'tag-keys.json.ba9876543210.tmp',
    ])
    assert.deepEqual([readdirSync(join(folder, 'chips')).length, readdirSync(elsewhere).length], [0, 1])
    assert.deepEqual(await removeDrafts(join(folder, 'none')), { removed: 0, failed: null })
  })

  it('are created once, and replaced as a whole', async () => {
    const path = join(folder, 'file')
    await createPrivateFile(path, 'one')
    await assert.rejects(createPrivateFile(path, 'two'), { code: 'EEXIST' })
    assert.equal(readFileSync(path, 'utf8'), 'one')
    chmodSync(path, 0o644)
    await writePrivateFile(path, 'two')
    assert.equal(readFileSync(path, 'utf8'), 'two')
    await createPrivateFile(`${path}-2`, '')
    for (const written of [path, `${path}-2`]) assert.equal(statSync(written).mode & 0o777, 0o600)
    assert.deepEqual(readdirSync(folder).filter(isDraft).length, 1, 'the one that another process may be writing')
  })
})

it('a sealed value is opened as no other kind, and not by a part of its tag', () => {
  const kek = randomBytes(32)
  const text = seal('tag-keys', { a: 1 }, kek)
  assert.deepEqual(unseal('tag-keys', text, kek), { value: { a: 1 } })
  assert.equal(unseal('tag-app-keys', text.replace('tag-keys', 'tag-app-keys'), kek), null)
  assert.equal(unseal('tag-keys', text.replace(/("tag": ".{8}).*"/, '$1"'), kek), null)
})

describe('a fault of the file system', () => {
  const fault = (code: string) => Object.assign(new Error(code), { code })

  it('is a sentence with a remedy, and its cause is for the log', () => {
    const full = fault('ENOSPC')
    const said = fileFault('/data/keys/tag-keys.json', full)
    assert.ok(said instanceof ServiceError)
    assert.equal(
      said.message,
      '/data/keys/tag-keys.json cannot be written: the disk of /data/keys is full. Free space on it, then run this again; what was there before is intact.',
    )
    assert.equal(said.cause, full)
    for (const code of ['EDQUOT', 'EROFS', 'EACCES', 'EPERM', 'EIO'])
      assert.match(String(fileFault('/data/a', fault(code))), /\/data\/a cannot be written: .*\/data.*\.$/)
  })

  it('stays as it is where the caller decides', () => {
    const taken = fault('EEXIST')
    assert.equal(fileFault('/data/a', taken), taken)
    for (const other of [null, undefined, 'text', fault('constructor')]) assert.equal(fileFault('/a', other), other)
  })
})

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import files from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { testFolder } from '../../../test/support/folder.ts'
import { type BackupKey, UnwrittenBackup, writeBackup } from './backup-file.ts'

const key: BackupKey = { setting: 'BACKUP_KEY', keys: [Uint8Array.from(randomBytes(32))] }

describe('a backup on a file system without hard links', () => {
  it('gets its name when it is complete, and replaces none that was made meanwhile', async (t) => {
    const link = t.mock.method(files, 'link', async () => {
      throw Object.assign(new Error('not here'), { code: 'EPERM' })
    })
    syncBuiltinESMExports()
    t.after(() => (link.mock.restore(), syncBuiltinESMExports()))
    const folder = testFolder()
    const path = join(folder, 'a.backup')
    let made: Buffer | undefined
    const late = writeBackup(path, key, async () => {
      await writeBackup(path, key, async () => {
        assert.deepEqual((await files.readdir(folder)).includes('a.backup'), false)
      })
      made = await files.readFile(path)
    })
    await assert.rejects(late, (error) => error instanceof UnwrittenBackup && error.message === 'EEXIST')
    assert.ok(made && made.length > 0)
    assert.deepEqual(await files.readFile(path), made)
    assert.deepEqual(await files.readdir(folder), ['a.backup'])
  })
})

import assert from 'node:assert/strict'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { it } from 'node:test'
import { testFolder } from '../../test/support/folder.ts'
import { readPrivateFile } from './private-folder.ts'

const folder = testFolder()

it('reads a file that is closed to others, within its bound', async () => {
  const path = join(folder, 'secret')
  await writeFile(path, 'abc')
  for (const mode of [0o600, 0o400, 0o440]) {
    await chmod(path, mode)
    assert.equal(await readPrivateFile(path, { maxBytes: 3 }), 'abc')
  }
  assert.equal(await readPrivateFile(path, { maxBytes: 2 }), null)
  for (const mode of [0o604, 0o620, 0o601]) {
    await chmod(path, mode)
    await assert.rejects(readPrivateFile(path, { maxBytes: 3 }), /secret is open to other users: chmod 600 closes it/)
  }
  await assert.rejects(readPrivateFile(join(folder, 'none'), { maxBytes: 3 }), /none cannot be read \(ENOENT\)\.$/)
})

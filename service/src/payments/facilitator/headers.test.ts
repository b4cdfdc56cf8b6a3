import assert from 'node:assert/strict'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { it } from 'node:test'
import { testFolder } from '../../../test/support/folder.ts'
import { readSecretHeaders } from './headers.ts'

const folder = testFolder()
const path = join(folder, 'headers.json')

async function write(text: string, mode = 0o600): Promise<void> {
  await writeFile(path, text)
  await chmod(path, mode)
}

it('reads names and values from a file that is closed to others', async () => {
  await write('{"Authorization":"Bearer abc","x-api-key":"k"}', 0o440)
  assert.deepEqual({ ...(await readSecretHeaders(path)) }, { Authorization: 'Bearer abc', 'x-api-key': 'k' })
})

it('rejects a missing or open file, and anything but header names and values, without repeating one', async () => {
  await assert.rejects(readSecretHeaders(join(folder, 'none.json')), /none\.json cannot be read \(ENOENT\)/)
  for (const mode of [0o604, 0o620, 0o644]) {
    await write('{}', mode)
    await assert.rejects(readSecretHeaders(path), /is open to other users/)
  }
  const long = JSON.stringify({ a: 'hunter2'.padEnd(17_000, 'x') })
  for (const text of ['', 'hunter2', '["hunter2"]', '{"a":1}', '{"a b":"hunter2"}', '{"a":"hunter2\\n"}', long]) {
    await write(text)
    await assert.rejects(readSecretHeaders(path), (error: Error) => {
      assert.match(error.message, /is not a JSON object of header names and values/)
      return !error.message.includes('hunter2')
    })
  }
})

import assert from 'node:assert/strict'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { testFolder } from '../../../test/support/folder.ts'
import { makeReadOnly } from '../../../test/support/read-only.ts'
import { readDataFiles, stageDataFiles } from './data-files.ts'

describe('the files of a data folder', () => {
  const folder = testFolder()
  before(async () => {
    await mkdir(join(folder, 'keys'))
  })

  it('are read while a service replaces them: a draft is none, and neither is a name whose file has vanished', async () => {
    await writeFile(join(folder, 'keys/tag-keys.json'), 'sealed')
    await writeFile(join(folder, 'keys/tag-keys.json.0123456789ab.tmp'), 'sea')
    await symlink(join(folder, 'removed'), join(folder, 'keys/vanished.json'))
    const parts: unknown[] = []
    for await (const part of readDataFiles(folder, { withStation: false })) parts.push(part)
    assert.deepEqual(parts, [{ file: 'keys/tag-keys.json', data: Buffer.from('sealed').toString('base64') }])
  })

  it('are not restored into a folder that takes none, and the remedy is named', async (t) => {
    const dataDir = testFolder()
    const keys = join(dataDir, 'keys')
    await mkdir(keys)
    using closed = makeReadOnly(keys)
    if (closed === null) return t.skip('no read-only folder can be mounted here')
    const staged = stageDataFiles(dataDir)
    const file = 'keys/tag-keys.json'
    await assert.rejects(staged.add({ file, data: '' }), (error: Error) =>
      error.message.startsWith(`${join(dataDir, file)} cannot be written: `),
    )
    await staged.remove()
  })
})

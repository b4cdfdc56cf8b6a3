import assert from 'node:assert/strict'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { testFolder } from '../../../test/support/folder.ts'
import { findObstacle, readDataFiles, stageDataFiles, stagedFolder } from './data-files.ts'

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
  it('that a killed restore left aside are known by their folder, and no other file is', async () => {
    const left = testFolder()
    await stageDataFiles(left).add({ file: 'keys/tag-keys.json', data: '' })
    const found = await findObstacle(left)
    assert.equal(found && stagedFolder(found), `keys/.restoring-${process.pid}`)
    assert.equal(stagedFolder('keys/tag-keys.json'), null)
  })
})

import assert from 'node:assert/strict'
import { readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { testFolder } from '../../../test/support/folder.ts'
import { stateFile } from './state.ts'

describe('the saved state of the local chain', () => {
  const root = testFolder()
  let folder: string
  let count = 0
  beforeEach(() => void (folder = join(root, String((count += 1)))))

  const saved = async () => {
    const { states, damaged } = await stateFile(folder).load()
    return { texts: states.map(({ json }) => Buffer.from(json).toString()), damaged }
  }

  it('is nothing in a folder that does not exist', async () => {
    assert.deepEqual(await saved(), { texts: [], damaged: 0 })
  })

  it('keeps the last two, newest first', async () => {
    for (const n of [1, 2, 3]) await stateFile(folder).save(gzipSync(`{"n":${n}}`))
    assert.deepEqual(await saved(), { texts: ['{"n":3}', '{"n":2}'], damaged: 0 })
  })

  it('leaves out a file that was cut anywhere, changed, or is no JSON object', async () => {
    const file = join(folder, 'chain.json.gz')
    const whole = gzipSync(JSON.stringify({ text: 'x'.repeat(1000) }))
    await stateFile(folder).save(gzipSync('{"n":1}'))
    await stateFile(folder).save(whole)
    for (let length = 0; length < whole.length; length += 1) {
      await writeFile(file, whole)
      await truncate(file, length)
      assert.deepEqual(await saved(), { texts: ['{"n":1}'], damaged: 1 }, `cut at ${length}`)
    }
    const changed = Buffer.from(whole)
    changed[changed.length - 6] = (changed.at(-6) ?? 0) ^ 1
    for (const bytes of [changed, gzipSync('[]')]) {
      await writeFile(file, bytes)
      assert.deepEqual(await saved(), { texts: ['{"n":1}'], damaged: 1 })
    }
  })

  it('finds the one before when a kill came between the two renames', async () => {
    await stateFile(folder).save(gzipSync('{"n":1}'))
    const bytes = await readFile(join(folder, 'chain.json.gz'))
    await rm(join(folder, 'chain.json.gz'))
    await writeFile(join(folder, 'chain.previous.json.gz'), bytes)
    assert.deepEqual(await saved(), { texts: ['{"n":1}'], damaged: 0 })
  })
})

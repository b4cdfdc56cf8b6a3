import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { testFolder } from '../../../test/support/folder.ts'
import { readJsonFile, readTextFile, writeNew } from './files.ts'
import { CommandError } from './output.ts'

describe('a file that a command is given', () => {
  const folder = testFolder()

  it('is read up to its bound', async () => {
    const path = join(folder, 'a.json')
    await writeFile(path, `{"a": "${'é'.repeat(40_000)}"}`)
    assert.deepEqual(await readJsonFile(path), { a: 'é'.repeat(40_000) })
    await writeFile(path, `"${'a'.repeat(100_000)}"`)
    await assert.rejects(readJsonFile(path), new CommandError(`${path} has more than 100000 characters.`))
    assert.equal(await readTextFile(path, 1_000), null)
  })

  it('is a file, and no pipe that would hold a thread until something writes to it', async () => {
    const pipe = join(folder, 'pipe.json')
    execFileSync('mkfifo', [pipe])
    for (const other of [folder, pipe, '/dev/zero'])
      await assert.rejects(
        readJsonFile(other),
        new CommandError(`There is no file ${other}: it is a folder, a pipe or a device.`),
      )
    const none = join(folder, 'none.json')
    await assert.rejects(readJsonFile(none), new CommandError(`There is no file ${none}.`))
    const circle = join(folder, 'circle')
    await symlink(circle, circle)
    await assert.rejects(readJsonFile(circle), new CommandError(`${circle} cannot be read (ELOOP).`))
  })

  it('is UTF-8, with a byte order mark or without', async () => {
    const path = join(folder, 'brand.json')
    await writeFile(path, '\uFEFF{"brand": "Größe"}')
    assert.deepEqual(await readJsonFile(path), { brand: 'Größe' })
    const refused = new CommandError(`${path} is not UTF-8: save the file as UTF-8.`)
    await writeFile(path, '{"brand": "Größe"}', 'latin1')
    await assert.rejects(readJsonFile(path), refused)
    await writeFile(path, '\uFEFF{"brand": "Größe"}', 'utf16le')
    await assert.rejects(readJsonFile(path), refused)
  })

  it('is written where there is none, and a name that cannot be used says what to give instead', async () => {
    const path = join(folder, 'new.txt')
    await writeNew(path, 'a')
    assert.equal(await readTextFile(path, 10), 'a')
    await assert.rejects(writeNew(path, 'b'), new CommandError(`${path} exists already; give --out a new file.`))
    const missing = new CommandError(`There is no folder ${folder}/none; make it, or give --out a file elsewhere.`)
    await assert.rejects(writeNew(join(folder, 'none', 'new.txt'), 'b'), missing)
    assert.equal(await readTextFile(path, 10), 'a')
  })
})

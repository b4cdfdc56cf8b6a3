import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, describe, it } from 'node:test'
import { testFolder } from '../../../test/support/folder.ts'
import { postgresMark } from '../../app/store.ts'
import { createLog } from '../../lib/log.ts'
import { assertDataFolder, closeDataFolder } from './closed-folder.ts'

const embedded = { databaseUrl: null }
const postgres = { databaseUrl: 'postgres://127.0.0.1/touchstone' }

/** Makes a folder that all users can read, with these empty files. */
function openFolder(...files: readonly string[]): string {
  const folder = testFolder()
  chmodSync(folder, 0o755)
  for (const file of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), '')
    chmodSync(join(folder, file), 0o644)
  }
  return folder
}

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

async function close(dataDir: string, store: { readonly databaseUrl: string | null } = embedded): Promise<string> {
  const lines: string[] = []
  await closeDataFolder(
    { dataDir, store },
    createLog((line) => void lines.push(line)),
  )
  return lines.join('\n')
}

describe('the data folder', () => {
  const umask = process.umask()
  after(() => void process.umask(umask))

  for (const [name, files] of [
    ['is empty', []],
    ['is a new volume', ['lost+found/x', '.snapshot']],
    ['has the folders of an image', ['keys/.keep', 'imports/.keep', 'audit/.keep']],
    ['is of a process that keeps nothing there but the mark of PostgreSQL', [postgresMark]],
    ['was made by an earlier version', ['store/PG_VERSION', 'notes.txt']],
    ['has keys of tags beside other files', ['keys/tag-keys.json', 'touchstone.env']],
    ['has an attestation key beside other files', ['keys/attest-0x12.json', 'touchstone.env']],
  ] as const)
    it(`is closed by a start where it ${name}`, async () => {
      const folder = openFolder(...files)
      assert.match(await close(folder), /was open to other users, and is closed now/)
      assert.equal(modeOf(folder), '700')
      for (const file of files.filter((path) => /^(keys|store)/.test(path)))
        assert.equal(modeOf(join(folder, file)), '600', file)
      assert.equal(await close(folder), '')
      await assertDataFolder({ dataDir: folder, store: embedded })
    })

  it('is closed by a start where DATA_DIR is a link to it', async () => {
    const folder = openFolder('keys/tag-keys.json')
    const link = join(testFolder(), 'link')
    symlinkSync(folder, link)
    await close(link)
    assert.equal(modeOf(folder), '700')
    assert.equal(modeOf(join(folder, 'keys/tag-keys.json')), '600')
  })

  for (const files of [
    ['index.html'],
    ['postgresql/PG_VERSION'],
    ['store/shop.ts', 'package.json'],
    ['keys/id_rsa.pub', 'passwd'],
  ])
    it(`is not made of a folder with ${files.join(' and ')}`, async () => {
      const folder = openFolder(...files)
      const refusal = { message: /is the folder of something else: it has \S+\. Nothing was changed; .* DATA_DIR\.$/ }
      await assert.rejects(close(folder), refusal)
      await assert.rejects(assertDataFolder({ dataDir: folder, store: embedded }), refusal)
      assert.equal(modeOf(folder), '755')
      for (const file of files) assert.equal(modeOf(join(folder, file)), '644')
    })

  it('may be shared with other things where PostgreSQL has the data, and stays open then', async () => {
    const folder = openFolder('index.html')
    assert.match(await close(folder, postgres), /has other files, and was not closed.*"entry":"index\.html"/)
    await assertDataFolder({ dataDir: folder, store: postgres })
    assert.equal(modeOf(folder), '755')
  })

  it('is no file, whose mode stays', async () => {
    const file = join(openFolder('hostname'), 'hostname')
    for (const store of [embedded, postgres]) await assert.rejects(close(file, store), /which is no folder/)
    await assert.rejects(assertDataFolder({ dataDir: file, store: embedded }), /which is no folder/)
    assert.equal(modeOf(file), '644')
  })

  it('is made by no command, because no service would know it', async () => {
    const dataDir = join(testFolder(), 'data')
    await assert.rejects(assertDataFolder({ dataDir, store: embedded }), {
      message: `There is no data folder at ${dataDir}. Name the one of your service in DATA_DIR; for a new one, start the service or make the folder.`,
    })
    await assertDataFolder({ dataDir, store: postgres })
    assert.deepEqual(readdirSync(dirname(dataDir)), [])
  })
})

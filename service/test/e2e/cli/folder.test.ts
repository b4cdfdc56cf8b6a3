/** A wrong DATA_DIR, or a wrong working folder, changes nothing and makes no second service. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { readConfig } from '../../../src/app/config/config.ts'
import { readOrCreateDemoSecrets } from '../../../src/cli/dev/secrets.ts'
import { checkFolder } from '../../../src/cli/doctor/machine.ts'
import { writeKeyFile } from '../../../src/tap/keys/key-file.ts'
import { copyEmptyPglite } from '../../support/database/pglite.ts'
import { testFolder } from '../../support/folder.ts'
import { freePorts, touchstone } from '../../support/processes/cli.ts'
import { noChain } from '../../support/processes/env.ts'

/** Returns the one sentence with which a command ends that is not done. */
async function refusal(line: string, cwd: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const settings = { ...freePorts, BACKUP_KEY: '5a'.repeat(31) + '01', ...env }
  const { exit, out, err } = await touchstone(line.split(' '), settings, cwd).ended
  assert.deepEqual([exit, out], [1, ''], err)
  assert.match(err, /^touchstone: [^\n]+\n$/)
  return err.slice('touchstone: '.length, -1)
}

describe('the folder of something else', () => {
  for (const command of ['index status', 'serve', 'dev'])
    it(`is refused by touchstone ${command}, and stays as it is`, async () => {
      const folder = testFolder()
      writeFileSync(join(folder, 'index.html'), 'hi')
      chmodSync(folder, 0o755)
      const said = await refusal(command, folder, { DATA_DIR: folder })
      assert.match(said, /is the folder of something else: it has index\.html\. Nothing was changed; /)
      assert.deepEqual(readdirSync(folder), ['index.html'])
      assert.equal(statSync(folder).mode & 0o777, 0o755)
    })

  it('may be a file, whose mode stays', async () => {
    const file = join(testFolder(), 'hostname')
    writeFileSync(file, 'here')
    chmodSync(file, 0o644)
    for (const command of ['serve', 'key list'])
      assert.match(await refusal(command, '/', { DATA_DIR: file }), /^DATA_DIR names .* which is no folder: name /)
    assert.equal(statSync(file).mode & 0o777, 0o644)
  })
})

describe('a working folder without ./data', () => {
  for (const command of ['key create test --out k.txt', 'backup b'])
    it(`gets no new service by touchstone ${command}`, async () => {
      const folder = testFolder()
      const said = await refusal(command, folder)
      assert.match(said, /^There is no data folder at .*\/data\. Name the one of your service in DATA_DIR; /)
      assert.deepEqual(readdirSync(folder), [])
    })
})

describe('the folder of a demonstration', () => {
  it('is named when a service of other keys is started in it', async () => {
    const dataDir = testFolder()
    await copyEmptyPglite(join(dataDir, 'store'))
    await mkdir(join(dataDir, 'keys'))
    const { kek } = await readOrCreateDemoSecrets(dataDir)
    const file = join(dataDir, 'keys', 'tag-keys.json')
    await writeKeyFile(file, [], { kek: Buffer.from(kek, 'hex') })
    const env = { ...freePorts, ...noChain, DATA_DIR: dataDir, TAG_KEK: '6b'.repeat(31) + '09' }
    const { exit, out, err } = await touchstone(['serve'], env).ended
    assert.equal(exit, 1)
    assert.match(out, /"the data folder is that of a demonstration \(npm start\)"/)
    assert.match(
      err,
      /^touchstone: .* is the folder of a demonstration \(npm start\): name a new one in DATA_DIR\. The key /,
    )
    const findings = await checkFolder({ dataDir, store: readConfig({}).store, demo: false })
    assert.match(JSON.stringify(findings), /is that of a demonstration/)
  })
})

it('a link to a data folder is one for touchstone doctor, and a link to nothing is none', async () => {
  const link = join(testFolder(), 'link')
  const found = async () => (await checkFolder({ dataDir: link, store: readConfig({}).store, demo: false }))[0]
  symlinkSync(testFolder(), link)
  assert.deepEqual(await found(), {
    state: 'ok',
    what: `${link} is writable, and closed to other users.`,
  })
  rmSync(link)
  symlinkSync(join(testFolder(), 'nothing'), link)
  assert.match(JSON.stringify(await found()), /wrong.* is no folder/)
})

const mayMount = spawnSync('unshare', ['--mount', 'true']).status === 0
describe('a data folder in memory', { skip: !mayMount && 'no right to mount' }, () => {
  const module = JSON.stringify(new URL('../../../src/cli/doctor/machine.ts', import.meta.url).href)
  const levelsOf = (size: string): string => {
    const folder = testFolder()
    const made = `{ dataDir: '${folder}', demo: false, store: { databaseUrl: 'postgres://127.0.0.1/touchstone' } }`
    const code = `const { checkFolder } = await import(${module})
      console.log((await checkFolder(${made})).map(({ state, what }) => state + ' ' + what).join('\\n'))`
    const script = `mount -t tmpfs -o mode=0700,size=${size} tmpfs ${folder} && exec "$0" --input-type=module -e "$1"`
    const { stdout, stderr } = spawnSync('unshare', ['--mount', 'sh', '-c', script, process.execPath, code], {
      encoding: 'utf8',
    })
    return stdout + stderr
  }
  it('is as large as somebody made it, and no warning where a start has enough', () => {
    assert.match(levelsOf('64m'), /^ok 0\.1 GB are free\.$/m)
    assert.match(levelsOf('8m'), /^wrong 0\.0 GB are free\.$/m)
  })
})

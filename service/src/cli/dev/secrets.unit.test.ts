import assert from 'node:assert/strict'
import { stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { testFolder } from '../../../test/support/folder.ts'
import { readDemoSecrets, readOrCreateDemoSecrets } from './secrets.ts'

describe('the secrets of a demonstration', () => {
  const dataDir = testFolder()

  it('do not exist until they are made, and stay the same from then on', async () => {
    assert.equal(await readDemoSecrets(dataDir), null)
    const secrets = await readOrCreateDemoSecrets(dataDir)
    assert.match(secrets.kek, /^[0-9a-f]{64}$/)
    assert.match(secrets.pepper, /^[0-9a-f]{64}$/)
    assert.notEqual(secrets.kek, secrets.pepper)
    assert.deepEqual(await readOrCreateDemoSecrets(dataDir), secrets)
    assert.deepEqual(await readDemoSecrets(dataDir), secrets)
  })

  it('are for the eyes of their owner only', async () => {
    assert.equal((await stat(join(dataDir, 'keys', 'demo.json'))).mode & 0o777, 0o600)
  })

  it('are never replaced when the file is damaged: every bound tag depends on them', async () => {
    await writeFile(join(dataDir, 'keys', 'demo.json'), '{"kek":"00')
    await assert.rejects(readOrCreateDemoSecrets(dataDir), /demo\.json is damaged/)
  })
})

import assert from 'node:assert/strict'
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { attestationSigner, type Hex } from '@touchstone/verdict'
import { testFolder } from '../../../test/support/folder.ts'
import { makeKey, readKeyFolder, type MadeKey } from './source.ts'

const hash: Hex = `0x${'12'.repeat(32)}`

describe('attestation keys in the data folder', () => {
  const folder = join(testFolder(), 'keys')
  let first: MadeKey
  before(async () => {
    assert.deepEqual(await readKeyFolder(folder), [])
    first = await makeKey(folder, 200)
  })

  it('sign the same after a restart', async () => {
    const [again] = await readKeyFolder(folder)
    assert.equal(again?.key.address, first.key.address)
    assert.equal(again?.made, 200)
    assert.equal(attestationSigner(hash, (await again?.key.sign(hash)) ?? '0x'), first.key.address.toLowerCase())
  })

  it('are for the eyes of their owner only, and nothing else is left behind', async () => {
    assert.deepEqual(await readdir(folder), [`${first.key.keyId}.json`])
    assert.equal((await stat(join(folder, `${first.key.keyId}.json`))).mode & 0o777, 0o600)
    assert.equal((await stat(folder)).mode & 0o777, 0o700)
  })

  it('stay beside one another, oldest first', async () => {
    const older = await makeKey(folder, 100)
    await writeFile(join(folder, 'issuer.jwks.json'), 'of somebody else')
    assert.deepEqual(
      (await readKeyFolder(folder)).map(({ key }) => key.address),
      [older.key.address, first.key.address],
    )
  })

  it('are never made anew when a file is damaged, and its text is not repeated', async () => {
    const path = join(folder, `${first.key.keyId}.json`)
    const text = await readFile(path, 'utf8')
    const { key } = JSON.parse(text) as { key: string }
    for (const damaged of [
      '',
      text.slice(0, -20),
      text.replace(key, `${key.slice(0, -1)}0${key.slice(-1)}`),
      text.replace('"made": 200', '"made": 0.5'),
    ]) {
      await writeFile(path, damaged)
      await assert.rejects(readKeyFolder(folder), (error: Error) => {
        assert.match(error.message, /json is damaged: restore it/)
        return !error.message.includes(key.slice(2, 20))
      })
    }
    await writeFile(path, text.replace(first.key.address, `0x${'11'.repeat(20)}`))
    await assert.rejects(readKeyFolder(folder), /damaged/)
    await writeFile(path, text)
    await chmod(path, 0o600)
    assert.equal((await readKeyFolder(folder)).length, 2)
  })
})

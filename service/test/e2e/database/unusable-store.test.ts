/** Folders of the embedded database that cannot be used. */
import assert from 'node:assert/strict'
import { mkdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { openDatabase } from '../../../src/db/database.ts'
import { testFolder } from '../../support/folder.ts'

it('is made again where its first start could not make every file', async () => {
  const dataDir = join(testFolder(), 'store')
  const obstacle = join(dataDir, 'postgresql.conf') // one of the last files
  mkdirSync(obstacle, { recursive: true })
  await assert.rejects(openDatabase({ dataDir }))
  rmdirSync(obstacle)
  const database = await openDatabase({ dataDir })
  assert.deepEqual(await database.query('select 1 as one'), [{ one: 1 }])
  await database.close()
})

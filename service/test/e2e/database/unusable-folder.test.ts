/** Folders of a data folder that cannot be used: closed to this process, or not made completely. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { openStoreComponents } from '../../../src/app/store.ts'
import { readConfig } from '../../../src/app/config/config.ts'
import { findObstacle, stageDataFiles } from '../../../src/cli/database/data-files.ts'
import { diagnoseSettings } from '../../../src/cli/doctor/doctor.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { createLog } from '../../../src/lib/log.ts'
import { noPostgres, openOwnDatabase } from '../../support/database/databases.ts'
import { copyEmptyPglite } from '../../support/database/pglite.ts'
import { testFolder } from '../../support/folder.ts'
import { makeReadOnly, noReadOnly } from '../../support/read-only.ts'

it(
  'says that the files are closed to this process, and not that a backup is needed',
  { skip: noReadOnly },
  async () => {
    const dataDir = testFolder()
    const store = join(dataDir, 'store')
    await copyEmptyPglite(store)
    using _closed = makeReadOnly(store)
    const settings = { DATA_DIR: dataDir, CHAIN_RPC_URLS: 'http://127.0.0.1:1', CHAIN_CONTRACT: `0x${'12'.repeat(20)}` }
    const log = createLog(() => {}, 'silent')
    await assert.rejects(
      openStoreComponents(readConfig(settings), log),
      /^Error: The database in \S+ cannot be opened, because \S+ may not be written \(\w+\)\. [^.]*(?:mount|owns)/i,
    )
    const findings = await diagnoseSettings(settings)
    const { state, what = '' } = findings.find(({ area }) => area === 'database') ?? {}
    assert.match(`${state}: ${what}`, /^wrong: \S+ may not be written \(\w+\)\.$/)
  },
)

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

it(
  'takes no restored file where it is closed to this process, and the remedy is named',
  { skip: noReadOnly },
  async () => {
    const dataDir = testFolder()
    const keys = join(dataDir, 'keys')
    mkdirSync(keys)
    using _closed = makeReadOnly(keys)
    const staged = stageDataFiles(dataDir)
    const file = 'keys/tag-keys.json'
    await assert.rejects(staged.add({ file, data: '' }), (error: Error) =>
      error.message.startsWith(`${join(dataDir, file)} cannot be written: `),
    )
    await staged.remove()
  },
)

it('makes no embedded database in the folder of a service on PostgreSQL', { skip: noPostgres }, async () => {
  const dataDir = testFolder()
  const own = await openOwnDatabase('migrated')
  await using _dropped = { [Symbol.asyncDispose]: () => own.close() }
  const log = createLog(() => {}, 'silent')
  const settings = { DATA_DIR: dataDir, CHAIN_RPC_URLS: 'http://127.0.0.1:1', CHAIN_CONTRACT: `0x${'12'.repeat(20)}` }
  const withDatabase = readConfig({ ...settings, DATABASE_URL: own.url })
  await (await openStoreComponents(withDatabase, log))[Symbol.asyncDispose]()
  assert.equal(await findObstacle(dataDir), null) // a backup may be restored there
  await assert.rejects(
    openStoreComponents(readConfig(settings), log),
    /^Error: The data of \S+ is in PostgreSQL\. Set DATABASE_URL as the service has it, or start the service/,
  )
  assert.equal(existsSync(join(dataDir, 'store')), false)
  const findings = await diagnoseSettings(settings)
  const { state, what = '' } = findings.find(({ area }) => area === 'database') ?? {}
  assert.match(`${state}: ${what}`, /^wrong: The data of \S+ is in PostgreSQL\.$/)
  await (await openStoreComponents(withDatabase, log))[Symbol.asyncDispose]()
})

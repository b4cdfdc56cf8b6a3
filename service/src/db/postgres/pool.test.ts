import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { noPostgres, openOwnDatabase } from '../../../test/support/database/databases.ts'
import { type Database, openDatabase } from '../database.ts'
import { isTimeout } from '../errors.ts'
import { OtherDatabaseError } from './identity.ts'

describe('the pool of PostgreSQL', { skip: noPostgres }, () => {
  const opened = new AsyncDisposableStack()
  let own: Awaited<ReturnType<typeof openOwnDatabase>>
  let database: Database
  before(async () => {
    own = opened.adopt(await openOwnDatabase(), (it) => it.close())
    const limited = await openDatabase({ url: own.url, poolSize: 1, statementTimeoutMs: 1_000 })
    database = opened.adopt(limited, (it) => it.close())
  })
  after(() => opened.disposeAsync())

  it('waits for a long statement of a transaction that allows it, and for no other', async () => {
    const sleep = 'select pg_sleep(2.5)' // longer than the limit of the connection, and than the time that the driver waits
    await database.transaction((sql) => sql.query(sleep), { statementTimeoutMs: 60_000 })
    await assert.rejects(database.query(sleep), isTimeout)
    await assert.rejects(
      database.transaction((sql) => sql.query(sleep)),
      isTimeout,
    )
  })

  it('does not open where the URL of its sessions names another database', async () => {
    const other = opened.adopt(await openOwnDatabase(), (it) => it.close())
    await assert.rejects(openDatabase({ url: own.url, directUrl: other.url }), OtherDatabaseError)
    const same = await openDatabase({ url: own.url, directUrl: `${own.url}?application_name=direct` })
    await same.close()
  })
})

/** `touchstone serve` while something around it is not ready yet: it waits, says so, and no SIGHUP ends it. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { diagnoseSettings } from '../../../src/cli/doctor/doctor.ts'
import { openOwnDatabase, noPostgres } from '../../support/database/databases.ts'
import { answerAs, atPort } from '../../support/database/proxy.ts'
import { testFolder } from '../../support/folder.ts'
import { freePort } from '../../support/free-port.ts'
import { freePorts, touchstone, untilSaid } from '../../support/processes/cli.ts'
import { noChain } from '../../support/processes/env.ts'
import { useOpened } from '../../support/opened.ts'

describe('touchstone serve starts', { skip: noPostgres }, () => {
  const dataDir = testFolder()
  const database = useOpened(() => openOwnDatabase('migrated'))

  for (const [words, serves] of [
    ['serve', 'verification host listens'],
    ['serve --workers 2', '"event":"worker serves","place":1'],
  ] as const)
    it(`${words}: PostgreSQL that restarts meanwhile is waited for, and a storm of SIGHUP ends nothing`, async () => {
      const port = await freePort()
      const env = { ...freePorts, DATA_DIR: dataDir, DATABASE_URL: atPort(database.url, port), ONLY: 'verification' }
      const secrets = { TAG_KEK: '6b'.repeat(31) + '01', TAG_PEPPER: '70'.repeat(31) + '02' }
      const service = touchstone(words.split(' '), { ...env, ...noChain, ...secrets })
      try {
        await untilSaid(service, 'PostgreSQL does not answer yet')
        for (let n = 0; n < 20; n += 1) service.child.kill('SIGHUP')
        await untilSaid(service, 'SIGHUP ignored')
        await using _postgres = await answerAs(database.url, port)
        await untilSaid(service, serves)
        assert.match(service.said(), new RegExp(serves))
        service.child.kill('SIGHUP')
        await untilSaid(service, words === 'serve' ? 'has no worker to replace' : 'every worker replaced')
        service.child.kill('SIGTERM')
        assert.equal((await service.ended).exit, 0, service.said())
      } finally {
        service.child.kill('SIGKILL')
      }
    })

  it('ends with one sentence when PostgreSQL does not come back in time', async () => {
    const away = { DATABASE_URL: 'postgres://127.0.0.1:1/none', DATABASE_WAIT_SECONDS: '1' }
    const env = { ...freePorts, ...noChain, DATA_DIR: dataDir, ...away }
    const { exit, out, err } = await touchstone(['serve'], env).ended
    assert.match(out, /PostgreSQL does not answer yet/)
    assert.match(err, /^touchstone: PostgreSQL cannot be reached under DATABASE_URL: ECONNREFUSED\.\n$/)
    assert.equal(exit, 1)
  })

  it('ends with the reason and the remedy when the server has no such database', async () => {
    const url = new URL(database.url)
    url.pathname = '/touchstone_none'
    const env = { ...freePorts, ...noChain, DATA_DIR: dataDir, DATABASE_URL: url.href }
    const { exit, err } = await touchstone(['serve'], env).ended
    assert.equal(
      err,
      'touchstone: PostgreSQL answers under DATABASE_URL: database "touchstone_none" does not exist. Make it with createdb, or correct the name.\n',
    )
    assert.equal(exit, 1)
    const found = await diagnoseSettings(env)
    assert.deepEqual(
      found.filter(({ area }) => area === 'database').map(({ what, remedy }) => `${what} ${remedy}`),
      ['PostgreSQL answers, and has no database of this name. Run createdb, or correct DATABASE_URL.'],
    )
  })

  it('ends with the reason when a later host cannot be opened', async () => {
    const port = String(await freePort())
    const env = {
      ...freePorts,
      ...noChain,
      DATA_DIR: dataDir,
      DATABASE_URL: database.url,
      ONLY: 'verification,graphql',
    }
    for (const [more, reason] of [
      [{ VERIFICATION_PORT: port, GRAPHQL_PORT: port }, /^touchstone: Port \d+ for the [a-z]+ host is in use\..*\n$/],
      [{ GRAPHQL_PERSISTED: '/none.json' }, /^touchstone: \/none\.json cannot be read \(ENOENT\)\.\n$/],
    ] as const) {
      const { exit, err } = await touchstone(['serve'], { ...env, ...more }).ended
      assert.match(err, reason)
      assert.equal(exit, 1)
    }
  })

  it('ends with the reason when the server answers, and ends a statement by a limit of time', async () => {
    const other = await openOwnDatabase('migrated')
    await other.exec(`alter database ${new URL(other.url).pathname.slice(1)} set lock_timeout = '10ms'`)
    const env = { ...freePorts, ...noChain, DATA_DIR: dataDir, DATABASE_URL: other.url, DATABASE_WAIT_SECONDS: '2' }
    const { exit, out, err } = await other.transaction(async (sql) => {
      await sql.query('lock table migration in access exclusive mode')
      return touchstone(['serve'], env).ended
    })
    await other.close()
    assert.doesNotMatch(out, /does not answer/)
    assert.equal(err, 'touchstone: PostgreSQL ended a statement: canceling statement due to lock timeout\n')
    assert.equal(exit, 1)
  })

  it('refuses a folder without the issuer keys of the database, and the doctor says so', async () => {
    const other = await openOwnDatabase('migrated')
    await other.query(`insert into issuer_key (id, public_key) values ('key-1', 'a')`)
    const found = await diagnoseSettings({ DATABASE_URL: other.url, DATA_DIR: testFolder(), PASSPORT_SIGNING: 'on' })
    await other.close()
    const keys = found.filter(({ area, state }) => area === 'keys' && state === 'wrong').map(({ what }) => what)
    assert.match(keys.join(), /^The passports of this database are signed with issuer keys that are not in /)
  })

  it('not where DATABASE_DIRECT_URL names another database, which doctor says too', async () => {
    const other = await openOwnDatabase()
    try {
      const env = { ...freePorts, DATA_DIR: dataDir, DATABASE_URL: database.url, DATABASE_DIRECT_URL: other.url }
      const found = await diagnoseSettings(env)
      assert.deepEqual(
        found.filter(({ area }) => area === 'database').map(({ state, what }) => [state, what]),
        [['wrong', 'DATABASE_DIRECT_URL names another database than DATABASE_URL: correct one of them.']],
      )
    } finally {
      await other.close()
    }
  })
})

/** LISTEN and locks among processes, on PGlite and on PostgreSQL, whose connections are cut. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { openDatabase, type Database } from '../database.ts'
import { openOwnDatabase, noPostgres, testDatabases } from '../../../test/support/database/databases.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { until } from '../../../test/support/wait.ts'

for (const { name, open, skip } of testDatabases()) {
  describe(`listening and locking on ${name}`, { skip }, () => {
    const database = useOpened(open)

    it('receives notices of its channel, first one of its own, and none after it was disposed', async () => {
      const { listening, received } = await listen(database)
      const before = received()
      await database.query(`select pg_notify('other', '')`)
      await database.query(`select pg_notify('news', '')`)
      await until(() => received() > before)
      assert.equal(received(), before + 1)
      await listening[Symbol.asyncDispose]()
      const other = await listen(database)
      const heard = other.received()
      await database.query(`select pg_notify('news', '')`)
      await until(() => other.received() > heard)
      assert.equal(received(), before + 1)
      await other.listening[Symbol.asyncDispose]()
    })

    it('receives the notice of a transaction only when it has committed', async () => {
      const { listening, received } = await listen(database)
      const before = received()
      await database.transaction(async (sql) => {
        await sql.query(`select pg_notify('news', '')`)
        if (database.dialect === 'pglite') return // it has one connection
        const { listening: others, received: receivedOthers } = await listen(database)
        assert.equal(received(), before)
        await database.query(`select pg_notify('news', '')`)
        await until(() => received() > before && receivedOthers() > 1)
        assert.equal(received(), before + 1)
        await others[Symbol.asyncDispose]()
      })
      await until(() => received() > before)
      await listening[Symbol.asyncDispose]()
    })

    it('gives a lock to one holder, and to the next one after its release', async () => {
      const first = await database.hold([84532, 7])
      assert.ok(first)
      assert.equal(await database.hold([84532, 7]), null)
      const other = await database.hold([84532, 8])
      assert.ok(other)
      await first.release()
      const second = await database.hold([84532, 7])
      assert.ok(second)
      await Promise.all([second.release(), other.release()])
      await second.lost
    })

    it('rejects a channel name that would be a statement', () => {
      assert.throws(() => database.listen('news; drop table x', () => {}), RangeError)
    })
  })
}

describe('a PostgreSQL session outside the pool', { skip: noPostgres }, () => {
  const database = useOpened(openOwnDatabase)

  /** Ends every session that waits after a statement that begins so, as a restart of the server would. */
  const terminate = async (statement: string) => {
    const ended = await database.query<{ pid: number }>(
      `select pid, pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
       and (query like $1 || '%' or query = 'select 1') and application_name = 'touchstone'`,
      [statement],
    )
    assert.ok(ended.length > 0, 'there was a session to end')
  }

  it('listens again after its session was ended, and calls back because a notice may be lost', async () => {
    const { listening, received } = await listen(database)
    await terminate('listen')
    await until(() => received() > 1)
    const again = received()
    await database.query(`select pg_notify('news', '')`)
    await until(() => received() > again)
    await listening[Symbol.asyncDispose]()
  })

  it('loses the lock with its session, and another holder takes over', async () => {
    const leader = await database.hold([84532, 7])
    assert.ok(leader)
    const other = await openDatabase({ url: database.url })
    assert.equal(await other.hold([84532, 7]), null)
    await terminate('select pg_try_advisory_lock')
    await leader.lost
    const next = await other.hold([84532, 7])
    assert.ok(next)
    assert.equal(await database.hold([84532, 7]), null)
    await leader.release() // a lost lock is not taken from its next holder
    assert.equal(await database.hold([84532, 7]), null)
    await other.close() // closing releases it
    const last = await database.hold([84532, 7])
    assert.ok(last)
    await last.release()
  })

  it('may die between two statements of a transaction, which then fails, and the next one has another', async () => {
    const failing = database.transaction(async (sql) => {
      const [own] = await sql.query<{ pid: number }>('select pg_backend_pid() as pid')
      await database.query('select pg_terminate_backend($1)', [own?.pid])
      const isThere = async () =>
        (await database.query('select from pg_stat_activity where pid = $1', [own?.pid])).length > 0
      await until(async () => !(await isThere())) // its end arrives while no statement waits for it
      return sql.query('select 1')
    })
    await assert.rejects(failing)
    assert.deepEqual(await database.transaction((sql) => sql.query('select 1 as one')), [{ one: 1 }])
  })

  it(
    'counts as lost within seconds when the network swallows everything, and the database closes',
    { timeout: 240_000 },
    async () => {
      await using network = await openNetwork(database.url)
      const through = await openDatabase({ url: network.url, statementTimeoutMs: 3_600_000 })
      const leader = await through.hold([84532, 9])
      assert.ok(leader)
      const idle = through.query('select 1')
      const open = Promise.withResolvers<void>()
      const cut = through.transaction(async (sql) => {
        await Promise.all([sql.query('select 1'), idle])
        open.resolve()
        await leader.lost
        return sql.query('select 1')
      })
      await open.promise
      const answered = network.answers()
      await until(() => network.answers() > answered) // a check of the session
      assert.equal(await Promise.race([leader.lost.then(() => 'lost'), Promise.resolve('held')]), 'held')
      network.swallow()
      await leader.lost // while nothing closed the connection
      await Promise.all([assert.rejects(cut, { code: 'DATABASE_UNAVAILABLE' }), through.close()])
    },
  )

  it('keeps trying while PostgreSQL is away, and ends at once when it is closed', { timeout: 240_000 }, async (t) => {
    await using network = await openNetwork(database.url)
    const through = await openDatabase({ url: network.url })
    const { received } = await listen(through)
    await network.reject()
    assert.equal(received(), 1)
    network.restore()
    await until(() => received() > 1)
    await network.reject()
    const pause = delay
    t.mock.timers.enable({ apis: ['setTimeout'] })
    syncBuiltinESMExports()
    t.after(() => (t.mock.timers.reset(), syncBuiltinESMExports()))
    await pause(200) // by now it waits before the next attempt
    await through.close() // no timer fires any more: nothing waits for the end of that pause
  })
})

/** Listens to `news`, from the moment when it is certain. */
async function listen(database: Database) {
  let count = 0
  const listening = database.listen('news', () => (count += 1))
  await until(() => count > 0)
  return { listening, received: () => count }
}

/** A proxy to the server that can swallow packets, or cut and reject connections. */
async function openNetwork(url: string) {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  let rejecting = false
  let answers = 0
  const server = createServer((near) => {
    if (rejecting) return void near.destroy()
    const far = connect(Number(target.port || 5432), target.hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('error', () => to.destroy()).on('close', () => to.destroy())
      from.pipe(to)
    }
    far.on('data', () => (answers += 1))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const here = new URL(url)
  here.port = String((server.address() as AddressInfo).port)
  const cut = () => {
    for (const socket of sockets) socket.destroy()
    sockets.clear()
  }
  return {
    url: here.href,
    answers: () => answers,
    swallow: () => {
      for (const socket of sockets) socket.unpipe().pause()
    },
    /** Resolves when a new connection was rejected. */
    reject: async () => {
      rejecting = true
      cut()
      await once(server, 'connection')
    },
    restore: () => {
      rejecting = false
      cut()
    },
    [Symbol.asyncDispose]: async () => {
      cut()
      server.close()
    },
  }
}

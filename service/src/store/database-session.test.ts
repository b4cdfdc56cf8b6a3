/** LISTEN and the lock among processes, on PGlite and on PostgreSQL, whose connections are cut under them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { openDatabase, type Database } from './database.ts'
import { openOwnDatabase, testDatabases } from '../../test/_databases.ts'

for (const { name, open, skip } of testDatabases()) {
  describe(`listening and locking on ${name}`, { skip }, () => {
    let database: Database
    before(async () => void (database = await open()))
    after(() => database.close())

    it('hears notices of its channel, at first one of its own, and none when it has stopped', async () => {
      const { listening, heard } = await listen(database)
      const before = heard()
      await database.query(`select pg_notify('other', '')`)
      await database.query(`select pg_notify('news', '')`)
      await until(() => heard() > before)
      assert.equal(heard(), before + 1)
      await listening[Symbol.asyncDispose]()
      await database.query(`select pg_notify('news', '')`)
      await delay(50)
      assert.equal(heard(), before + 1)
    })

    it('hears what a transaction tells only when it has committed', async () => {
      const { listening, heard } = await listen(database)
      const before = heard()
      await database.transaction(async (sql) => {
        await sql.query(`select pg_notify('news', '')`)
        await delay(50)
        assert.equal(heard(), before)
      })
      await until(() => heard() > before)
      await listening[Symbol.asyncDispose]()
    })

    it('gives a lock to one holder, and to the next when it is let go', async () => {
      const first = await database.hold(84532, 7)
      assert.ok(first)
      assert.equal(await database.hold(84532, 7), null)
      const other = await database.hold(84532, 8)
      assert.ok(other)
      await first.release()
      const second = await database.hold(84532, 7)
      assert.ok(second)
      await Promise.all([second.release(), other.release()])
      await second.lost
    })

    it('refuses a channel that would be a statement', () => {
      assert.throws(() => database.listen('news; drop table x', () => {}), RangeError)
    })
  })
}

describe('a connection of its own to PostgreSQL', { skip: testDatabases()[1]?.skip ?? true }, () => {
  let database: Awaited<ReturnType<typeof openOwnDatabase>>
  before(async () => void (database = await openOwnDatabase()))
  after(() => database.close())

  /** Ends every session that waits after a statement that begins so, as a restart of the server would. */
  const terminate = async (statement: string) => {
    const ended = await database.query<{ pid: number }>(
      `select pid, pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
       and (query like $1 || '%' or query = 'select 1') and application_name = 'touchstone'`,
      [statement],
    )
    assert.ok(ended.length > 0, 'there was a session to end')
  }

  it('listens again after its session was ended, and says that it may have missed something', async () => {
    const { listening, heard } = await listen(database)
    await terminate('listen')
    await until(() => heard() > 1)
    const again = heard()
    await database.query(`select pg_notify('news', '')`)
    await until(() => heard() > again)
    await listening[Symbol.asyncDispose]()
  })

  it('loses the lock with its session, and another holder takes over', async () => {
    const leader = await database.hold(84532, 7)
    assert.ok(leader)
    const other = await openDatabase({ url: database.url })
    assert.equal(await other.hold(84532, 7), null)
    await terminate('select pg_try_advisory_lock')
    await leader.lost
    const next = await other.hold(84532, 7)
    assert.ok(next)
    assert.equal(await database.hold(84532, 7), null)
    await leader.release() // what is lost is not taken from the next
    assert.equal(await database.hold(84532, 7), null)
    await other.close() // closing lets go
    const last = await database.hold(84532, 7)
    assert.ok(last)
    await last.release()
  })

  it('may die between two statements of a transaction, which then fails, and the next one has another', async () => {
    const failing = database.transaction(async (sql) => {
      const [own] = await sql.query<{ pid: number }>('select pg_backend_pid() as pid')
      await database.query('select pg_terminate_backend($1)', [own?.pid])
      await delay(200) // its end arrives while no statement waits for it
      return sql.query('select 1')
    })
    await assert.rejects(failing)
    assert.deepEqual(await database.transaction((sql) => sql.query('select 1 as one')), [{ one: 1 }])
  })

  it('counts as lost within seconds when the network swallows everything', async () => {
    await using network = await openNetwork(database.url)
    const through = await openDatabase({ url: network.url })
    const leader = await through.hold(84532, 9)
    assert.ok(leader)
    const early = await Promise.race([leader.lost.then(() => 'lost'), delay(1_500, 'held')])
    assert.equal(early, 'held')
    network.swallow()
    const began = performance.now()
    await leader.lost
    assert.ok(performance.now() - began < 4_500, `${performance.now() - began} ms`)
    network.restore()
    await through.close()
  })

  it('keeps trying while PostgreSQL is away, and ends at once when it is closed', async () => {
    await using network = await openNetwork(database.url)
    const through = await openDatabase({ url: network.url })
    const { heard } = await listen(through)
    network.refuse()
    await delay(300)
    assert.equal(heard(), 1)
    network.restore()
    await until(() => heard() > 1)
    network.refuse()
    const began = performance.now()
    await through.close()
    assert.ok(performance.now() - began < 2_500)
  })
})

/** Listens to `news`, from the moment when it is certain. */
async function listen(database: Database) {
  let count = 0
  const listening = database.listen('news', () => (count += 1))
  await until(() => count > 0)
  return { listening, heard: () => count }
}

async function until(isSo: () => boolean): Promise<void> {
  for (const deadline = performance.now() + 10_000; !isSo(); await delay(5))
    assert.ok(performance.now() < deadline, 'it did not happen within 10 s')
}

/** A way to the server that can swallow packets or cut and refuse connections. */
async function openNetwork(url: string) {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  let refusing = false
  const server = createServer((near) => {
    if (refusing) return void near.destroy()
    const far = connect(Number(target.port || 5432), target.hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('error', () => to.destroy()).on('close', () => to.destroy())
      from.pipe(to)
    }
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
    swallow: () => {
      for (const socket of sockets) socket.unpipe().pause()
    },
    refuse: () => {
      refusing = true
      cut()
    },
    restore: () => {
      refusing = false
      cut()
    },
    [Symbol.asyncDispose]: async () => {
      cut()
      server.close()
    },
  }
}

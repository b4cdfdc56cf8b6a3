/** Defects made on purpose under `npm run chaos -- --plant`, which the checks must find: a check that cannot fail shows nothing. */
import { setTimeout as delay } from 'node:timers/promises'
import { openDatabase } from '../../service/src/db/database.ts'
import { clusterOf } from './faults/citus.ts'
import { currentPooler } from './faults/database.ts'
import { liar } from './faults/liar.ts'
import type { Plant } from './row.ts'

export const plants: { readonly [name: string]: Plant } = {
  /** Both providers lie about owners, and the instances accept their answers. */
  'forged-verdict': {
    during({ chain }) {
      for (const provider of chain.providers) provider.set({ rewrite: liar(chain.contract, () => {}) })
      return () => {
        for (const provider of chain.providers) provider.set('none')
      }
    },
  },
  /** No provider answers, whatever the fault leaves of them. */
  'no-provider': {
    during({ chain: { providers } }) {
      const timer = setInterval(() => providers.forEach((provider) => provider.set('die')), 20)
      return () => {
        clearInterval(timer)
        for (const provider of providers) provider.set('none')
      }
    },
  },
  /** Every instance ends at SIGHUP, and at a start that meets a lock. */
  impatient: { nodeFlags: ['--import', new URL('faults/impatient-hook.ts', import.meta.url).href] },
  /** The leader cannot write: another session holds its row. */
  'stalled-index': {
    during({ database }) {
      const over = Promise.withResolvers<void>()
      void database.transaction(async (sql) => {
        await sql.query('select from index_cursor for update')
        await over.promise
      })
      return over.resolve
    },
  },
  /** As asynchronous replication that has fallen behind: the standby that takes over lacks what was accepted. */
  'lagging-standby': {
    during({ postgres }) {
      void postgres.detachStandby().catch(notPlanted)
      return () => {}
    },
  },
  /** PgBouncer takes connections, before its restart and after it, and hands none to the server. */
  'paused-pooler': {
    during() {
      const timer = setInterval(() => currentPooler()?.pause(), 20)
      return () => {
        clearInterval(timer)
        currentPooler()?.resume()
      }
    },
  },
  /** The worker comes back as an older copy of it: the taps that it took are gone. */
  'restored-worker': {
    async after(fleet) {
      const { on, workers } = clusterOf(fleet)
      for (const worker of workers.slice(0, 1)) await on(worker, forEachShard('tap', 'delete from %s'))
    },
  },
  /** The shards of the tags on one worker cannot be written for a while. */
  'locked-shards': {
    during(fleet) {
      const { on, workers } = clusterOf(fleet)
      const hold = 'lock table %s in access exclusive mode'
      for (const worker of workers.slice(0, 1))
        void on(worker, `${forEachShard('tag', hold)}; select pg_sleep(20)`).catch(notPlanted)
      return () => {}
    },
  },
  /** Somebody rolls back on a worker what the coordinator commits. Slow commits there leave time for it. */
  'half-commits': {
    during(fleet) {
      const over = new AbortController()
      const { on, coordinator, workers } = clusterOf(fleet)
      void slowCommits((statement) => on(coordinator, statement), over.signal).catch(notPlanted)
      for (const worker of workers.slice(0, 1))
        void rollBackPrepared(worker.primaryUrl(), over.signal).catch(notPlanted)
      return () => over.abort()
    },
  },
  /** As after a lost write: taps below the last counter of their tags count again. */
  'doubled-tap': {
    async after({ database }) {
      await database.query('update tag set last_counter = 0')
    },
  },
  'lost-tap': {
    async after({ database }, { taps }) {
      const [{ uid, counter } = { uid: '', counter: 0 }] = taps.accepted
      await database.query('delete from tap where uid = $1 and counter = $2', [Buffer.from(uid, 'hex'), counter])
    },
  },
  /** Only a comparison with the logs finds it. */
  'lost-history': {
    async after({ database }) {
      await database.query('delete from history where token_id % 2 = 0')
    },
  },
  'doubled-event': {
    async after({ database }) {
      await database.query(
        `insert into outbox (topic, token_id, payload) select topic, token_id, payload from outbox where topic = 'tap' limit 1`,
      )
    },
  },
  'lost-payment': {
    async after({ database }) {
      await database.query('delete from payment')
    },
  },
}

const notPlanted = (error: unknown) => console.log(`not planted: ${String(error)}`)

/** Formats a statement of a worker for each of its shards of a table, which Citus hides. */
function forEachShard(table: string, statement: string): string {
  return `set citus.override_table_visibility = off; set citus.enable_manual_changes_to_shards = on; do $$ declare shard text; begin
    for shard in select relname from pg_class where relkind = 'r' and relname ~ '^${table}_\\d+$' loop
      execute format('${statement.replace('%s', '%I')}', shard)
    ; end loop; end $$`
}

/** Each commit takes a tenth of a second, from the moment at which the server runs again. */
async function slowCommits(run: (statement: string) => Promise<void>, over: AbortSignal): Promise<void> {
  const isUp = () =>
    run('select 1').then(
      () => true,
      () => false,
    )
  while (!over.aborted && !(await isUp())) await delay(100)
  await run('alter system set commit_siblings = 0')
  await run('alter system set commit_delay = 100000')
  await run('select pg_reload_conf()')
  while (!over.aborted) await delay(100)
  await run('alter system reset commit_delay')
  await run('select pg_reload_conf()')
}

async function rollBackPrepared(url: string, over: AbortSignal): Promise<void> {
  const worker = await openDatabase({ url, poolSize: 1 })
  while (!over.aborted) {
    const prepared = await worker.query<{ gid: string }>(`select gid from pg_prepared_xacts where gid like 'citus%'`)
    for (const { gid } of prepared) await worker.exec(`rollback prepared '${gid}'`).catch(() => {}) // it was committed
    await delay(1)
  }
  await worker.close()
}

/** Several, one after another. */
export function together(all: readonly Plant[]): Plant {
  return {
    nodeFlags: all.flatMap(({ nodeFlags = [] }) => nodeFlags),
    during(fleet) {
      const undo = all.flatMap(({ during }) => during?.(fleet) ?? [])
      return () => undo.forEach((end) => end())
    },
    async after(fleet, load) {
      for (const { after } of all) await after?.(fleet, load)
    },
  }
}

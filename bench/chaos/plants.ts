/** Defects made on purpose under `npm run chaos -- --plant`, which the checks must find: a check that cannot fail shows nothing. */
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
      void postgres.detachStandby().catch((error: unknown) => console.log(`not planted: ${String(error)}`))
      return () => {}
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

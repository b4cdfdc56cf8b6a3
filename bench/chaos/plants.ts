/** Damage done on purpose before the checks of `npm run chaos`, which must find it: a check that cannot fail shows nothing. */
import type { Plant } from './row.ts'

export const plants: { readonly [name: string]: Plant } = {
  /** A lost write: the tag's counter is what it was at first, so that a tap below its last one counts again. */
  'doubled-tap': async ({ database }) => {
    await database.query('update tag set last_counter = 0')
  },
  'lost-tap': async ({ database }, { taps }) => {
    const [{ uid, counter } = { uid: '', counter: 0 }] = taps.accepted
    await database.query('delete from tap where uid = $1 and counter = $2', [Buffer.from(uid, 'hex'), counter])
  },
  'doubled-event': async ({ database }) => {
    await database.query(`insert into outbox (topic, token_id, payload) select topic, token_id, payload from outbox where topic = 'tap' limit 1`)
  },
  'lost-proof': async ({ database }) => {
    await database.query(`update payment set answer = '{}' where state = 'done'`)
  },
}

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { summaryOf } from './traced.ts'

describe('the summary of a statement', () => {
  for (const [text, summary] of [
    [`select 'a secret' from asset where name = 'b'`, 'select asset'],
    [
      'with t as (select 1), u (a, b) as materialized (insert into tag values ($1)) insert into tap select * from t',
      'insert tag, insert tap',
    ],
    [
      'select a.x, extract(epoch from a.seen) from asset a left join tag using (id), unnest($1::text[]) n',
      'select asset, tag',
    ],
    ['insert into tap (a) values ($1) on conflict (a) do update set a = 2', 'insert tap'],
    [`delete from outbox where seq < '5'`, 'delete outbox'],
    ['select announce_tap($1, $2)', 'select announce_tap'],
    [`select pg_notify($1, 'x')`, 'select'],
    [`set local statement_timeout = '5s'`, 'set'],
    ['select 1', 'select'],
  ] as const)
    it(`${text.slice(0, 40)}… is ${summary}`, () => assert.equal(summaryOf(text), summary))
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { testDatabases } from '../../support/database/databases.ts'
import { runTapRace } from './race.ts'

const postgres = testDatabases().find(({ name }) => name === 'PostgreSQL')

describe('two processes over one PostgreSQL', { skip: postgres?.skip ?? 'no PostgreSQL' }, () => {
  it('take every tap exactly once, and every duplicate as the same tap', async () => {
    const { requests, taps, freshTwice, lost, refused, wrongRows } = await runTapRace({ requests: 1600, tags: 5 })
    assert.deepEqual(
      { requests, taps, freshTwice, lost, refused, wrongRows },
      { requests: 1600, taps: 100, freshTwice: 0, lost: 0, refused: 0, wrongRows: 0 },
    )
  })
})

/** Resumable events (spec §6): a client that is cut off holds the state of the chain at the end, by events alone. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { noPostgres } from '../../support/database/databases.ts'
import { followEvents } from './away.ts'

describe('a client of events, while the chain is reorganised', { skip: noPostgres }, () => {
  it('holds the state of the chain although it is cut off all the time', async () => {
    const { cuts, reorgs, received, events } = await followEvents({ events: 1_500, reorgs: 8, cuts: 60 })
    assert.deepEqual({ cuts, reorgs, received }, { cuts: 60, reorgs: 8, received: events })
  })

  it('holds the state of the chain although its server is killed', async () => {
    const { kills, received, events } = await followEvents({ events: 800, reorgs: 4, kills: 3 })
    assert.deepEqual({ kills, received }, { kills: 3, received: events })
  })
})

/** `touchstone index rebuild` in the service that leads the index (spec §4.9). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type FaultWorld, startFaultWorld } from '../../support/fault-world.ts'
import { commandsOf } from '../../support/processes/cli.ts'
import { until } from '../../support/wait.ts'

describe('touchstone index rebuild', () => {
  let world: FaultWorld
  before(async () => {
    world = await startFaultWorld({ INDEX_CHECK_SECONDS: '86400' })
  })
  after(() => world?.end())

  it('ends when the index was read again, also where the leader has not noticed yet', async () => {
    await world.mint()
    const { source, indexer, database } = world.components
    await indexer.until((await source.head()).number, 600_000)
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    const asked = world.faults.count('eth_getLogs')
    world.faults.set({ methods: ['eth_getLogs'], held })
    let ended = false
    const rebuilding = commandsOf(world)('index', 'rebuild', '--yes').finally(() => (ended = true))
    await until(() => world.faults.count('eth_getLogs') > asked)
    assert.equal(ended, false)
    release()
    const { exit, out, err } = await rebuilding
    assert.equal(exit, 0, err)
    assert.match(out, /^The index is complete to block \d+\.$/m)
    assert.deepEqual(await database.query('select count(*) from asset'), [{ count: 1n }])
  })
})

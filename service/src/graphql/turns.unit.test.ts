import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { queuedStores } from './queued-stores.ts'
import type { IndexStores } from './stores.ts'
import { createTurns } from './turns.ts'

describe('the turns of a key', () => {
  it('hold the cost of its open subscriptions below a bound, each key its own', () => {
    const { open } = createTurns({ maxOpenCost: 10 })
    const [first, second] = [open('a', 6), open('a', 4)]
    assert.ok(first !== null && second !== null)
    assert.equal(open('a', 1), null)
    assert.ok(open('b', 10) !== null)
    first()
    first() // once more takes nothing off
    assert.equal(open('a', 7), null)
    assert.ok(open('a', 6) !== null)
  })
})

describe('a read of a list', () => {
  it('that has waited too long is not begun, because its operation is over', async () => {
    let reads = 0
    const count = async () => (reads += 1)
    const store = { count, page: count, find: count }
    const names = ['products', 'transfers', 'past', 'groups', 'taps']
    const stores = Object.fromEntries(names.map((name) => [name, store])) as unknown as IndexStores
    const patient = queuedStores(stores, (work) => work())
    assert.equal(await patient.groups.count('BRAND'), 1)
    const late = queuedStores(stores, (work) => work(), -1)
    await assert.rejects(late.groups.count('BRAND'), { extensions: { code: 'RATE_LIMITED' } })
    assert.equal(reads, 1)
  })
})

/** Mutations outlast the time of their operation, over HTTP and a real chain (spec §4.9). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { tagStore } from '../../../src/tap/tag-registry.ts'
import { startGraphql } from '../../support/graphql/host.ts'
import { startMutationWorld, type MutationWorld, type Payload } from '../../support/graphql/mutations.ts'
import { refusalOf } from '../../support/index/transfers.ts'

type Host = Awaited<ReturnType<typeof startGraphql>>

describe('a mutation that outlasts its time', () => {
  let world: MutationWorld
  let patient: Host
  /** The time of its operations is over after the first step. */
  let brief: Host
  /** It answers while the first step is under way. */
  let hasty: Host
  const hosts: Host[] = []
  before(async () => {
    world = await startMutationWorld()
    const { database, resolvers } = world
    for (const times of [{}, { timeoutMs: 1 }, { timeoutMs: 1, lastStepMs: 1 }])
      hosts.push(await startGraphql(database, { resolvers: [resolvers], times }))
    ;[patient, brief, hasty] = hosts as [Host, Host, Host]
  })
  after(async () => {
    for (const host of hosts) await host.end()
    await world.end()
  })

  const step = (name: string) =>
    `${name}: registerProduct(input: { tagId: "${name}", name: "A product", idempotencyKey: "${name}" }) {
      success txHash productId errors { field message } }`
  const ask = (host: Host, ...names: readonly string[]) =>
    host.ask(`mutation { ${names.map(step).join(' ')} }`, {}, patient.key)

  it('answers with the steps that were done, and refuses those that it has not begun', async () => {
    const supply = await world.supply()
    const { data, errors } = await ask(brief, 'first', 'second', 'third')
    assert.deepEqual(errors, [])
    const { first, second, third } = data as unknown as Record<string, Payload>
    assert.deepEqual([first?.success, first?.errors], [true, []])
    assert.match(String(first?.['txHash']), /^0x[0-9a-f]{64}$/)
    for (const refused of [second, third]) {
      assert.deepEqual([refused?.success, refused?.['txHash'], refused?.['productId']], [false, null, null])
      assert.deepEqual(refused?.errors, [
        { field: 'input', message: 'Nothing was done: the steps before this one took too long. Send it again.' },
      ])
    }
    assert.equal(await world.supply(), supply + 1)
    const again = await ask(brief, 'second')
    assert.equal((again.data as unknown as Record<string, Payload>)['second']?.success, true)
    assert.equal(await world.supply(), supply + 2)
  })

  it('is not called refused while it may still be done, and its outcome is found under its key', async () => {
    const supply = await world.supply()
    await world.automine(false)
    const { status, data, errors } = await ask(hasty, 'unknown')
    assert.deepEqual([status, data, errors.length], [200, null, 1])
    assert.equal(errors[0]?.extensions['code'], 'DEADLINE_EXCEEDED')
    assert.match(errors[0]?.message ?? '', /may have been done: repeat it with the same idempotencyKey/)
    await world.automine(true)
    await world.mine()
    const repeated = await ask(patient, 'unknown')
    assert.equal((repeated.data as unknown as Record<string, Payload>)['unknown']?.success, true)
    assert.equal(await world.supply(), supply + 1)
  })

  it('asks for a repeat of a binding that is not mined in time, and the repeat registers the tag', async () => {
    const tags = tagStore(world.database)
    await tags.putBatch({ id: 'test', epoch: 0, settings: {} })
    const { productId } = await world.ask('registerProduct', 'productId', { tagId: 'bound', name: 'A product' })
    const uid = Buffer.from('04a1b2c3d4e5f6', 'hex')
    const item = { gtin: '09506000134352', serialNumber: 'S-1' }
    const input = { productId, uid: uid.toString('hex'), batchId: 'test', ...item }
    const impatient = world.writerOver(world.operations, { receiptWaitMs: 100 })
    await world.automine(false)
    const early = await world.askOver(impatient)('bindTag', 'txHash product { id }', input)
    refusalOf(early, 'input', /not mined yet.*Repeat this request/)
    assert.match(String(early['txHash']), /^0x[0-9a-f]{64}$/)
    assert.equal(await tags.tagOfUid(uid), undefined)
    await world.automine(true)
    await world.mine()
    const repeated = await world.ask('bindTag', 'txHash', input)
    assert.deepEqual([repeated.success, repeated['txHash']], [true, early['txHash']])
    const [tag] = await tags.tagsOfItems([{ gtin: item.gtin, serial: item.serialNumber }])
    assert.equal(tag?.tokenId, BigInt(String(productId)))
    await impatient.close()
  })
})

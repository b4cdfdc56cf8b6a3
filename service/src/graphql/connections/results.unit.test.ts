/** The results of subscriptions of one key, which share its turns. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { buildSchema, parse, type ExecutionArgs, type GraphQLError } from 'graphql'
import type { GraphqlContext } from '../context.ts'
import { createTurns } from '../turns.ts'
import { createResultMaker, type Results } from './results.ts'

/** Subscribes each name to one event. Notes in `log` what is executed, and each turn of the event loop. */
async function subscribeTo(names: readonly string[], maxOpenCost: number) {
  const log: string[] = []
  const schema = buildSchema('type Query { of: String } type Subscription { of(name: String): String }')
  Object.assign(schema.getSubscriptionType()?.getFields()['of'] ?? {}, {
    async *subscribe() {
      yield {}
    },
    resolve: (_event: object, { name }: { name: string }) => log.push(name) && name,
  })
  const contextValue = { key: { id: 'key' }, turns: createTurns({ maxOpenCost }), requestId: '', cost: 5 }
  const context = contextValue as unknown as GraphqlContext
  const maker = createResultMaker({ formatError: (error) => error as GraphQLError }, () => context)
  const argsOf = (name: string): ExecutionArgs => ({
    schema,
    document: parse(`subscription { of(name: "${name}") }`),
    contextValue: context,
  })
  const open = (name: string) => maker.subscribe(argsOf(name))
  const streams = (await Promise.all(names.map(open))) as Results[]
  const loop = () => {
    log.push('loop')
    if (log.length < 20) setImmediate(loop)
  }
  setImmediate(loop)
  return { log, streams, open }
}

describe('the results of the subscriptions of a key', () => {
  it('are executed one after another, with a turn of the event loop before each', async () => {
    const { log, streams } = await subscribeTo(['a', 'b', 'c'], 15)
    await Promise.all(streams.map((stream) => stream.next()))
    assert.deepEqual(log.slice(0, 6), ['loop', 'a', 'loop', 'b', 'loop', 'c'])
  })

  it('are not executed after the subscription has ended, which makes room for another', async () => {
    const { log, streams, open } = await subscribeTo(['a', 'b'], 10)
    assert.deepEqual(((await open('c')) as { errors?: GraphQLError[] }).errors?.[0]?.extensions, {
      code: 'RATE_LIMITED',
    })
    const results = streams.map((stream) => stream.next())
    await streams[1]?.return(undefined)
    assert.deepEqual(
      (await Promise.all(results)).map(({ done }) => done),
      [false, true],
    )
    assert.ok(!log.includes('b'))
    assert.ok('next' in (await open('c')))
  })
})

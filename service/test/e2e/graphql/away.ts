/**
 * A client that follows `events` of a service while the chain is reorganised. It loses its connection at random, or its server by SIGKILL.
 * Its state at the end is compared with the chain. `npm run stress:events` runs it with 20,000 events.
 */
import assert from 'node:assert/strict'
import { createClient } from 'graphql-ws'
import { WebSocket } from 'ws'
import { eventKinds } from '../../../src/domain/registry-event.ts'
import { apiKeyStore, newApiKey } from '../../../src/access/api-keys.ts'
import { sleep } from '../../../src/lib/async/sleep.ts'
import { openOwnDatabase } from '../../support/database/databases.ts'
import { keepSecret } from '../../support/evidence.ts'
import { testFolder } from '../../support/folder.ts'
import { freePort } from '../../support/free-port.ts'
import { createStory } from '../../support/index/story.ts'
import {
  assertFeedIsIndex,
  assertIndexIsChain,
  expectedTransfers,
  hash,
  type IndexChain,
  operator,
  startIndexChain,
} from '../../support/index/world.ts'
import { touchstone, type Running } from '../../support/processes/cli.ts'
import { envOf } from '../../support/processes/env.ts'
import { until } from '../../support/wait.ts'

/** `onProgress` gets the number of events so far. */
export type Away = Readonly<{
  events: number
  reorgs: number
  cuts?: number
  kills?: number
  onProgress?: (events: number) => void
}>

/** Throws when the client does not hold the state of the chain at the end. Returns what happened. */
export async function followEvents({ events, reorgs, cuts = 0, kills = 0, onProgress = () => {} }: Away) {
  await using opened = new AsyncDisposableStack()
  const chain = opened.adopt(await startIndexChain(), (it) => it.close())
  const database = opened.use(await openOwnDatabase('migrated'))
  const folder = testFolder()
  const { text: key, hash: keyHash } = newApiKey()
  keepSecret(key)
  await apiKeyStore(database).create({ hash: keyHash, name: 'away', scopes: ['read'] })
  const port = await freePort()
  const env = {
    ...envOf({ dataDir: folder, database, chain }),
    INDEX_POLL_MS: '25',
    GRAPHQL_PORT: String(port),
    RATE_LIMIT_GRAPHQL: '0',
  }
  let server = startServer(env)
  opened.defer(async () => {
    server.child.kill('SIGKILL')
    await server.ended
  })
  const count = async () => {
    const [row] = await database.query<{ n: number; newest: bigint }>(
      'select count(*)::int as n, coalesce(max(seq), 0) as newest from outbox where kind is not null',
    )
    return row ?? { n: 0, newest: 0n }
  }
  // The client begins at the oldest position that is kept, which is before the first event.
  await until(async () => (await database.query('select 1 from index_cursor where fed_epoch = epoch')).length > 0)
  const client = createFollower({ url: `ws://127.0.0.1:${port}/graphql`, key, events, cuts })
  const following = client.run()

  const story = createStory(chain, nextHash(), { tokens: 60, reorgs: false })
  const done = { reorgs: 0, kills: 0, deepest: 0 }
  for (let acts = 0; ; acts += 1) {
    await story([Math.floor(Math.random() * 1_000_000), Math.floor(Math.random() * 60_000)])
    if (acts % 20 > 0) continue
    await chain.send(operator.address, 'mintBatch', [operator.address, Array(20).fill(hash(acts))])
    const { n } = await count()
    onProgress(n)
    if (done.reorgs < reorgs && n > ((done.reorgs + 1) * events) / (reorgs + 1)) {
      const depth = done.reorgs === 0 ? 30 : 1 + Math.floor(Math.random() * 30)
      await chain.reorg(depth)
      Object.assign(done, { reorgs: done.reorgs + 1, deepest: Math.max(done.deepest, depth) })
    }
    if (done.kills < kills && n > ((done.kills + 1) * events) / (kills + 1)) {
      await until(() => client.isConnected())
      server.child.kill('SIGKILL')
      await server.ended
      server = startServer(env)
      done.kills += 1
    }
    if (n >= events && done.reorgs === reorgs && done.kills === kills) break
  }
  await chain.mine(1)
  await until(async () => {
    const [row] = await database.query<{ number: bigint }>('select number from index_cursor')
    return row?.number === (await chain.head())
  })
  // Offers expire meanwhile, which is an event too.
  let last = await count()
  await until(async () => {
    last = await count()
    return client.last() === last.newest && client.received() === last.n && client.cuts() === cuts
  })
  const received = client.received()
  client.stop()
  await following
  server.child.kill('SIGKILL')
  await server.ended
  await assertIndexIsChain(chain, database)
  await assertFeedIsIndex(database)
  assert.deepEqual(client.state(), await stateOf(chain))
  return {
    ...done,
    events: last.n,
    received,
    retractions: client.retractions(),
    cuts: client.cuts(),
  }
}

function startServer(env: Readonly<Record<string, string>>): Running {
  return touchstone(['serve', '--only', 'graphql,indexer'], env)
}

function nextHash() {
  let tags = 0
  return () => hash((tags += 1))
}

const query = `subscription ($after: ID) { events(after: $after) {
  position kind retracts productId transfer { id status }
  cause { type fromState toState reports hash to { address } } } }`

type FeedEvent = Readonly<{
  position: string
  kind: string
  retracts: string | null
  productId: string
  transfer: { id: string; status: string } | null
  cause: { toState: string; reports: string[]; hash: string; to: { address: string } } | null
}>

/** Creates a client that keeps nothing but the events that it applied. It cuts its connection off after random events. */
function createFollower({
  url,
  key,
  events,
  cuts,
}: Readonly<{ url: string; key: string; events: number; cuts: number }>) {
  const live = new Map<string, FeedEvent>()
  const known = new Set<string>()
  let after = '0-0'
  let done = 0
  let retractions = 0
  let isStopped = false
  let socket: WebSocket | undefined

  function apply(event: FeedEvent): void {
    assert.ok(!known.has(event.position), `${event.position} came twice`)
    assert.ok(numberOf(event.position) > numberOf(after), `${event.position} came after ${after}`)
    known.add(event.position)
    after = event.position
    if (event.retracts === null) live.set(event.position, event)
    else assert.ok(live.delete(event.retracts), `${event.position} retracts ${event.retracts}, which does not hold`)
    if (event.retracts !== null) retractions += 1
  }

  async function follow(): Promise<void> {
    const client = createClient({
      url,
      webSocketImpl: WebSocket,
      on: { opened: (opened) => void (socket = opened as WebSocket) },
      connectionParams: { authorization: `Bearer ${key}` },
      retryAttempts: 0,
    })
    try {
      for await (const { data, errors } of client.iterate<{ events: FeedEvent }>({ query, variables: { after } })) {
        assert.equal(errors, undefined)
        if (data) apply(data.events)
        const isLate = known.size > events
        if (done < cuts && Math.random() < (isLate ? 1 : (1.5 * cuts) / events)) {
          done += 1
          socket?.terminate()
          return
        }
      }
    } finally {
      await client.dispose()
    }
  }

  return {
    async run(): Promise<void> {
      while (!isStopped)
        await follow().catch(async (error: unknown) => {
          if (error instanceof assert.AssertionError) throw error
          await sleep(50) // the connection is refused while the server starts
        })
    },
    stop: () => {
      isStopped = true
      socket?.terminate()
    },
    isConnected: () => socket?.readyState === WebSocket.OPEN,
    last: () => numberOf(after),
    cuts: () => done,
    received: () => known.size,
    retractions: () => retractions,
    state: () => folded([...live.values()]),
  }
}

function numberOf(position: string): bigint {
  return BigInt(position.split('-')[0] ?? 0)
}

type Token = Record<'owner' | 'state' | 'reports' | 'metadata' | 'tag', string>

/** Folds events in order into the state of every token, and the status of every transfer. An offer is open until a transaction ends it. */
function folded(events: readonly FeedEvent[]) {
  const tokens: Record<string, Token> = {}
  const transfers: Record<string, string> = {}
  for (const { kind, productId: id, cause, transfer } of events) {
    const { toState = '', reports = [], hash: given = '', to } = cause ?? {}
    const owner = to?.address.toLowerCase() ?? ''
    if (kind === 'REGISTERED') tokens[id] = { owner, state: 'NONE', reports: '', metadata: given, tag: hash(0) }
    if (kind === 'TRANSFER' && transfer !== null)
      transfers[transfer.id] = transfer.status === 'PENDING' || cause === null ? 'open' : transfer.status
    const token = tokens[id]
    if (token === undefined) throw new Error(`${kind} of ${id} comes before its registration.`)
    if (kind === 'OWNER_CHANGED') token.owner = owner
    if (kind === 'STATE_CHANGED') token.state = toState
    if (kind === 'FLAGS_CHANGED') token.reports = reports.join(' ')
    if (kind === 'METADATA_SET') token.metadata = given
    if (kind === 'TAG_BOUND') token.tag = given
  }
  return { tokens, transfers }
}

const stateNames = ['NONE', 'MINTED', 'BOUND', 'ACTIVATED', 'CLAIMED', 'FLAGGED', 'RECYCLED']
const reportBits = { LOST: 1, STOLEN: 2, RECALL: 4, STOLEN_CONFIRMED: 8, INVESTIGATION: 16, TAMPER: 32 }

/** Folds the logs of the chain in the same way, as viem decodes them. */
async function stateOf(chain: IndexChain) {
  const logs = await chain.events()
  const tokens: Record<string, Token> = {}
  for (const { kind, args } of logs) {
    const id = String(args['tokenId'])
    const token = (tokens[id] ??= { owner: '', state: 'NONE', reports: '', metadata: hash(0), tag: hash(0) })
    if (kind === eventKinds.AssetMinted) token.metadata = String(args['metadata'])
    if (kind === eventKinds.Transfer) token.owner = String(args['to']).toLowerCase()
    if (kind === eventKinds.StateChanged) token.state = stateNames[Number(args['to'])] ?? ''
    if (kind === eventKinds.FlagsChanged)
      token.reports = Object.entries(reportBits)
        .flatMap(([name, bit]) => ((Number(args['flags']) & bit) === 0 ? [] : [name]))
        .join(' ')
    if (kind === eventKinds.MetadataHashSet) token.metadata = String(args['metadataHash'])
    if (kind === eventKinds.TagBound) token.tag = String(args['tagHash'])
  }
  const transfers = Object.fromEntries(expectedTransfers(logs).map(({ id, status }) => [id, status]))
  return { tokens, transfers }
}

if (import.meta.main) {
  const [events = 20_000, reorgs = 50, cuts = 500, kills = 40] = process.argv.slice(2).map(Number)
  for (const [what, options] of Object.entries({ 'cut off': { cuts }, 'server killed': { kills } })) {
    if (Object.values(options).includes(0)) continue
    const began = performance.now()
    let said = 0
    const onProgress = (n: number) => {
      if (n < said + events / 20) return
      said = n
      const seconds = Math.round((performance.now() - began) / 1_000)
      process.stderr.write(`${what}: ${n} of ${events} events after ${seconds} s\n`)
    }
    const result = await followEvents({ events, reorgs, ...options, onProgress })
    const text = Object.entries(result).map(([name, value]) => `${name} ${value}`)
    process.stdout.write(
      `${what}: ${text.join(', ')}; ${Math.round((performance.now() - began) / 1_000)} s, state equal\n`,
    )
  }
}

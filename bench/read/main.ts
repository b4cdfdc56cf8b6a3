/**
 * `npm run bench:read`: the keyless read beside its limits, in one interleaved run, as ratios.
 * Cached: the verification host beside a bare `node:http` server that writes one prepared verdict with the same headers.
 * Cold: distinct tokens, in process, beside one `eth_call` per request with viem. Clients: 256 over 10,000 tokens.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Hex } from '@touchstone/verdict'
import { createPublicClient, http } from 'viem'
import { assetRegistryAbi } from '../../service/src/domain/registry-abi.ts'
import { createAssetReader } from '../../service/src/chain/assets/reader.ts'
import { createChainSource } from '../../service/src/chain/rpc/source.ts'
import { createVerdicts } from '../../service/src/assets/verdicts.ts'
import { readConfig } from '../../service/src/app/config/config.ts'
import { chainId } from '../../service/src/domain/chain.ts'
import { cpuSecondsOf } from '../lib/cost.ts'
import { applyLoad } from '../lib/load.ts'
import { whole } from '../lib/print.ts'
import { median, startServer } from '../lib/processes.ts'
import { silent, startWorld } from '../lib/world.ts'
import { applyWrk, generator } from '../lib/wrk.ts'
import { readOptions } from '../../scripts/options.ts'

readOptions({})

const tokens = 10_000
const rounds = 5
const cachedRounds = 11
/** Rounds that are not counted, until V8 has compiled the code of a read. */
const warmUps = 2
const pairsOfProcesses = 3
type Measured = { readonly rate: number; readonly micros: number }
type Round = { readonly bare: Measured; readonly ours: Measured }
const script = fileURLToPath(new URL('server.ts', import.meta.url))
const ratio = (value: number) => `×${value.toFixed(2)}`

console.log(`minting ${whole(tokens)} assets on a local chain …`)
await using made = new AsyncDisposableStack()
const dataDir = await mkdtemp(join(tmpdir(), 'touchstone-bench-'))
made.defer(() => rm(dataDir, { recursive: true, force: true }))
const world = made.adopt(await startWorld(tokens), (it) => it.close())
await cachedReads()
await coldReads()
await manyClients()

/**
 * Processor time of the server for each request is a steadier figure than its rate. A busy machine takes a share of the rate. Processes of
 * the same code differ by a tenth, because each compiles it anew: so there are several pairs, one after the other. Within a pair the rounds
 * alternate without a pause, because V8 gives up code of a process that has waited for ten seconds.
 */
async function cachedReads(): Promise<void> {
  const pairs: (readonly Round[])[] = []
  for (let index = 0; index < pairsOfProcesses; index += 1)
    pairs.push(await cachedPair(join(dataDir, `cached-${index}`)))
  const all = pairs.flat()
  const ratioOf = (some: readonly Round[]) => ratio(median(some.map((round) => round.bare.micros / round.ours.micros)))
  const middle = (pick: (round: Round) => number) => median(all.map(pick))
  console.log(
    `cached reads      bare ${middle((round) => round.bare.micros).toFixed(1)} µs   ours ${middle((round) => round.ours.micros).toFixed(1)} µs of processor time each   ` +
      `ratio ${ratioOf(all)} (of pairs of processes: ${pairs.map(ratioOf).join(', ')}) in ${cachedRounds} rounds each\n` +
      `                  bare ${whole(middle((round) => round.bare.rate))}/s   ours ${whole(middle((round) => round.ours.rate))}/s   load by ${generator}`,
  )
}

async function cachedPair(folder: string): Promise<Round[]> {
  await using pair = new AsyncDisposableStack()
  const start = async (args: readonly string[]) => pair.adopt(await startServer(script, args), (it) => it.stop())
  const ours = await start(['touchstone', world.url, world.contract, 'events', folder])
  const verdict = await (await fetch(`http://127.0.0.1:${ours.port}/api/asset/1`)).text()
  const bare = await start(['bare', String(Buffer.byteLength(verdict))])
  const paths = Array.from({ length: 1_000 }, (_, index) => `/api/asset/${index + 1}`)
  async function measure({ port, pid }: typeof ours): Promise<Measured> {
    await applyWrk({ port, paths, connections: 32, seconds: 1 })
    const before = cpuSecondsOf([pid])
    const { requests, rate } = await applyWrk({ port, paths, connections: 32, seconds: 2 })
    return { rate, micros: ((cpuSecondsOf([pid]) - before) * 1_000_000) / requests }
  }
  const all: Round[] = []
  for (let round = 0; round < warmUps + cachedRounds; round += 1)
    all.push({ bare: await measure(bare), ours: await measure(ours) })
  return all.slice(warmUps)
}

async function coldReads(): Promise<void> {
  const { chain } = readConfig({
    CHAIN_RPC_URLS: world.url,
    CHAIN_CONTRACT: world.contract,
    CHAIN_MAX_HEAD_AGE_SECONDS: '0',
  })
  const viem = createPublicClient({ transport: http(world.url) })
  const count = 2_000
  const rates: Record<'viem' | 'ours' | 'verdicts' | 'calls', number[]> = {
    viem: [],
    ours: [],
    verdicts: [],
    calls: [],
  }
  for (let round = 0; round < rounds; round += 1) {
    const ids = Array.from({ length: count }, (_, index) => BigInt(((round * count + index) % tokens) + 1))
    rates.viem.push(
      await rateOf(ids.slice(0, 500), (tokenId) =>
        viem.readContract({
          address: world.contract,
          abi: assetRegistryAbi,
          functionName: 'getAsset',
          args: [tokenId],
        }),
      ),
    )
    const source = createChainSource({ ...chain, contract: world.contract, chainId, log: silent })
    const reader = createAssetReader({ ...chain, cache: 'off', source, contract: world.contract, log: silent })
    const verdicts = createVerdicts({
      assets: reader,
      metadata: { get: async () => undefined },
      contract: world.contract as Hex,
      maxEntries: 1,
      log: silent,
    })
    await reader.read(1n)
    const before = reader.stats().upstreamCalls
    rates.ours.push(await rateOf(ids, reader.read))
    rates.calls.push(((reader.stats().upstreamCalls - before) / count) * 1000)
    rates.verdicts.push(await rateOf(ids, verdicts.answer))
    reader.close()
    await source.close()
  }
  const each = rates.ours.map((rate, round) => rate / (rates.viem[round] ?? Number.NaN))
  console.log(
    `cold reads        viem ${whole(median(rates.viem))}/s   ours ${whole(median(rates.ours))}/s   ratio ${ratio(median(each))}   ` +
      `upstream calls per 1,000 ${median(rates.calls).toFixed(1)} (viem 1,000)   as whole verdicts ${whole(median(rates.verdicts))}/s`,
  )
}

async function manyClients(): Promise<void> {
  const server = await startServer(script, [
    'touchstone',
    world.url,
    world.contract,
    'events',
    join(dataDir, 'clients'),
  ])
  const paths = Array.from({ length: tokens }, (_, index) => `/api/asset/${((index * 7_919) % tokens) + 1}`)
  const { requests, rate, p50, p99, statuses } = await applyLoad({
    port: server.port,
    paths,
    connections: 256,
    seconds: 4,
  })
  await server.stop()
  const stats =
    server
      .said()
      .split('\n')
      .findLast((line) => line.startsWith('{')) ?? ''
  const { upstreamCalls, batches, batchedIds } = JSON.parse(stats) as Record<string, number>
  console.log(
    `256 clients       ${whole(requests)} answers over ${whole(tokens)} tokens   ${whole(rate)}/s   p50 ${p50.toFixed(1)} ms   p99 ${p99.toFixed(1)} ms   ${JSON.stringify(statuses)}\n` +
      `                  ${whole(batchedIds ?? 0)} tokens in ${whole(batches ?? 0)} batches, ${whole(upstreamCalls ?? 0)} upstream calls in all: ${(((upstreamCalls ?? 0) / requests) * 1000).toFixed(1)} per 1,000 answers`,
  )
}

/** Answers a second with 512 in flight. */
async function rateOf(ids: readonly bigint[], read: (tokenId: bigint) => Promise<unknown>): Promise<number> {
  let next = 0
  const began = performance.now()
  await Promise.all(
    Array.from({ length: 512 }, async () => {
      for (let id = ids[next++]; id !== undefined; id = ids[next++]) await read(id)
    }),
  )
  return (ids.length / (performance.now() - began)) * 1000
}

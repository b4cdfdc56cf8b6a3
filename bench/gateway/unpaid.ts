/** POST /verify without a payment (spec §2.6): offers a second beside a bare server that writes the same 402, in interleaved rounds. */
import { request as httpRequest } from 'node:http'
import { fileURLToPath } from 'node:url'
import { costOf } from '../lib/cost.ts'
import type { Ours, Prepared } from './server.ts'
import type { GatewayWorld } from './world.ts'
import { applyLoad } from '../lib/load.ts'
import { whole } from '../lib/print.ts'
import { type BenchServer, median, startServer } from '../lib/processes.ts'

const script = fileURLToPath(new URL('server.ts', import.meta.url))
const rounds = 5

/** `rate` in requests a second, `cpu` in µs of the server's process for each request, `p99` in ms. */
type Measured = { readonly rate: number; readonly cpu: number; readonly p99: number }

/** Prints one line; `seconds` for each round of each server. */
export async function benchUnpaid(world: GatewayWorld, seconds: number): Promise<void> {
  await using made = new AsyncDisposableStack() // the gateway looks after payments: it must not be there when others are timed
  const { rpcUrl, contract, databaseUrl, dataDir } = world
  const facilitatorKey = await world.newFacilitator()
  const ours = await start(made, 'ours', { rpcUrl, contract, databaseUrl, dataDir, facilitatorKey })
  const bodies = Array.from({ length: 1_000 }, (_, index) => bodyOf(index + 1))
  const prepared = await answerOf(ours.port, bodies[0] ?? '')
  if (prepared.status !== 402) throw new Error(`The gateway offers nothing: ${prepared.status} ${prepared.body}`)
  const bare = await start(made, 'bare', prepared)

  const load = async ({ port, pid }: BenchServer, forSeconds: number): Promise<Measured> => {
    const before = costOf(pid).cpuSeconds
    const sent = { port, paths: ['/verify'], bodies, connections: 32, seconds: forSeconds }
    const { requests, rate, p99, statuses } = await applyLoad(sent)
    if (Object.keys(statuses).join() !== '402') throw new Error(`unexpected statuses ${JSON.stringify(statuses)}`)
    return { rate, p99, cpu: ((costOf(pid).cpuSeconds - before) / requests) * 1e6 }
  }
  for (const server of [bare, ours]) await load(server, seconds)
  const results: { bare: Measured; ours: Measured }[] = []
  for (let round = 0; round < rounds; round += 1)
    results.push({ bare: await load(bare, seconds), ours: await load(ours, seconds) })

  const middle = (of: (round: (typeof results)[number]) => number) => median(results.map(of))
  console.log(
    `unpaid 402        bare ${whole(middle((it) => it.bare.rate))}/s   ours ${whole(middle((it) => it.ours.rate))}/s   ` +
      `ratio ×${middle((it) => it.ours.rate / it.bare.rate).toFixed(2)}   p99 ${middle((it) => it.ours.p99).toFixed(1)} ms   ` +
      `CPU a request ${middle((it) => it.bare.cpu).toFixed(0)} and ${middle((it) => it.ours.cpu).toFixed(0)} µs, ` +
      `×${middle((it) => it.ours.cpu / it.bare.cpu).toFixed(2)}`,
  )
}

async function start(made: AsyncDisposableStack, kind: 'ours' | 'bare', settings: Ours | Prepared) {
  return made.adopt(await startServer(script, [kind, JSON.stringify(settings)]), (it) => it.stop())
}

const bodyOf = (tokenId: number) => JSON.stringify({ assetId: String(tokenId), chain: 'base-sepolia' })

/** One answer as it came, without the headers that `node:http` adds by itself. */
function answerOf(port: number, body: string): Promise<Prepared> {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
    const request = httpRequest({ port, host: '127.0.0.1', method: 'POST', path: '/verify', headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const raw = response.rawHeaders
        const own = raw.filter((_, index) => !/^(?:date|connection|keep-alive)$/i.test(raw[index - (index % 2)] ?? ''))
        resolve({ status: response.statusCode ?? 0, headers: own, body: Buffer.concat(chunks).toString() })
      })
    })
    request.on('error', reject)
    request.end(body)
  })
}

/**
 * `npm run bench:mcp` measures tool calls over MCP beside a bare server and the official SDK. It prints ratios of one interleaved run; the
 * SDK has a server for each request. Calls are of the modern revision, over 1,000 tokens whose verdicts are at hand. The ratios are of
 * answers per second of the server's processor time, which what else runs on the machine changes less than it does the rates.
 */
import { fileURLToPath } from 'node:url'
import { costOf, warnWhenBusy } from '../lib/cost.ts'
import { applyLoad } from '../lib/load.ts'
import { whole } from '../lib/print.ts'
import { type BenchServer, median, startServer } from '../lib/processes.ts'
import { readOptions } from '../../scripts/options.ts'

readOptions({})

const tokens = 1_000
const rounds = 7
/** Rate that tool calls must reach, as a multiple of the SDK's. */
const leastOfSdk = 10
const script = fileURLToPath(new URL('server.ts', import.meta.url))

const headers = [
  'Accept: application/json, text/event-stream',
  'MCP-Protocol-Version: 2026-07-28',
  'Mcp-Method: tools/call',
]
const envelope = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
type Rate = { readonly wall: number; readonly cpu: number; readonly p99: number }

await warnWhenBusy()
await using made = new AsyncDisposableStack()
const start = async (kind: string) => made.adopt(await startServer(script, [kind]), (it) => it.stop())
const servers = { bare: await start('bare'), ours: await start('ours'), sdk: await start('sdk') }
for (const tool of ['verify_asset', 'check_flagged']) {
  const ofSdk = await compare(tool)
  if (ofSdk < leastOfSdk) {
    console.log(`${tool} is below ${leastOfSdk} times the SDK`)
    process.exitCode = 1
  }
}

/** Prints one line and gives the ratio to the SDK. */
async function compare(tool: string): Promise<number> {
  const bodies = Array.from({ length: tokens }, (_, index) => bodyOf(tool, index + 1))
  const measured: Record<keyof typeof servers, Rate[]> = { bare: [], ours: [], sdk: [] }
  for (let round = -1; round < rounds; round += 1)
    for (const name of ['bare', 'ours', 'sdk'] as const) {
      const rate = await rateOf(servers[name], tool, bodies, round < 0 ? 4 : 1.2)
      if (round >= 0) measured[name].push(rate)
    }
  const middle = (name: keyof typeof servers, key: keyof Rate) => median(measured[name].map((rate) => rate[key]))
  const ratioTo = (other: 'bare' | 'sdk') =>
    median(measured.ours.map(({ cpu }, round) => cpu / (measured[other][round]?.cpu ?? Number.NaN)))
  console.log(
    `${tool.padEnd(14)} bare ${whole(middle('bare', 'wall'))}/s   SDK ${whole(middle('sdk', 'wall'))}/s   ours ${whole(middle('ours', 'wall'))}/s   ` +
      `p99 ${middle('ours', 'p99').toFixed(1)} ms   by processor time: ×${ratioTo('sdk').toFixed(1)} of the SDK, ×${ratioTo('bare').toFixed(2)} of bare`,
  )
  return ratioTo('sdk')
}

async function rateOf({ pid, port }: BenchServer, tool: string, bodies: string[], seconds: number): Promise<Rate> {
  const before = costOf(pid).cpuSeconds
  const load = { port, paths: ['/mcp'], bodies, headers: [...headers, `Mcp-Name: ${tool}`], connections: 32, seconds }
  const { requests, rate, p99, statuses } = await applyLoad(load)
  if (Object.keys(statuses).join() !== '200') throw new Error(`unexpected statuses ${JSON.stringify(statuses)}`)
  return { wall: rate, cpu: requests / (costOf(pid).cpuSeconds - before), p99 }
}

function bodyOf(tool: string, tokenId: number): string {
  const params = { _meta: envelope, name: tool, arguments: { token_id: String(tokenId) } }
  return JSON.stringify({ jsonrpc: '2.0', id: tokenId, method: 'tools/call', params })
}

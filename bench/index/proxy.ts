/**
 * A JSON-RPC proxy in a process of its own that counts what an indexer asks of a chain. So neither the indexer nor the chain is charged for
 * the counting. `GET /` gives the counts and begins anew.
 */
import { Agent, request as send } from 'node:http'
import { fileURLToPath } from 'node:url'
import { servePort, startServer } from '../lib/processes.ts'

/** `calls` counts every member of a JSON-RPC batch, `requests` HTTP requests. `firstAt` is the unix time of the first in ms, 0 for none. */
type Counts = {
  readonly requests: number
  readonly calls: number
  readonly firstAt: number
  readonly methods: Record<string, number>
}

export type CountingProxy = {
  readonly url: string
  readonly take: () => Promise<Counts>
  readonly stop: () => Promise<void>
}

export async function startCountingProxy(upstream: string): Promise<CountingProxy> {
  const { port, stop } = await startServer(fileURLToPath(import.meta.url), [upstream], { core: 1 })
  const url = `http://127.0.0.1:${port}`
  return { url, take: async () => (await (await fetch(url)).json()) as Counts, stop }
}

function serve(upstream: string): void {
  const agent = new Agent({ keepAlive: true })
  const none = () => ({ requests: 0, calls: 0, firstAt: 0, methods: {} as Record<string, number> })
  let counts = none()
  const count = (body: string) => {
    counts.requests += 1
    counts.firstAt ||= performance.timeOrigin + performance.now()
    for (const [, method = ''] of body.matchAll(/"method":"(\w+)"/g)) {
      counts.calls += 1
      counts.methods[method] = (counts.methods[method] ?? 0) + 1
    }
  }
  servePort((request, response) => {
    if (request.method === 'GET') {
      response.end(JSON.stringify(counts))
      counts = none()
      return
    }
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      count(body.toString('latin1'))
      const headers = { 'content-type': 'application/json', 'content-length': body.length }
      send(upstream, { method: 'POST', agent, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, { 'content-type': 'application/json' })
        answer.pipe(response)
      })
        .on('error', () => response.destroy())
        .end(body)
    })
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) serve(process.argv[2] ?? '')

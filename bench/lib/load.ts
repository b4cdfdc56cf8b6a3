/**
 * A load generator in a process of its own. It has `connections` keep-alive sockets on loopback, one request at a time each, until
 * `seconds` are over. It counts answers by status and measures the time to the end of each body. It speaks just enough HTTP/1.1 to be
 * cheaper than any server.
 */
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { text } from 'node:stream/consumers'
import { percentile } from './processes.ts'
import { run } from './program.ts'

export type Load = {
  readonly port: number
  readonly paths: readonly string[]
  readonly connections: number
  readonly seconds: number
  readonly headers?: readonly string[]
  /** Each path is asked for by a client of its own, as a proxy on loopback names it. */
  readonly forwarded?: boolean
  /** Sent in turn by POST to the first path. */
  readonly bodies?: readonly string[]
}
/** Milliseconds for the percentiles, requests a second for the rate. */
export type LoadResult = {
  readonly requests: number
  readonly rate: number
  readonly p50: number
  readonly p99: number
  readonly statuses: Record<string, number>
}

/** Runs the load on the second core and waits for its result. */
export async function applyLoad(load: Load): Promise<LoadResult> {
  const input = JSON.stringify(load)
  const generator = run({ command: process.execPath, args: [fileURLToPath(import.meta.url)], core: 1, input })
  const [result] = await generator.line(/^\{.*\}$/m, (load.seconds + 60) * 1_000)
  await generator.ended
  return JSON.parse(result) as LoadResult
}

async function generate({
  port,
  paths,
  connections,
  seconds,
  headers = [],
  forwarded,
  bodies,
}: Load): Promise<LoadResult> {
  const head = (line: string, more: readonly string[]) =>
    [`${line} HTTP/1.1`, 'Host: 127.0.0.1', ...headers, ...more, '', ''].join('\r\n')
  const requests =
    bodies?.map((body) => {
      const length = ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`]
      return Buffer.from(head(`POST ${paths[0]}`, length) + body)
    }) ??
    paths.map((path, index) => {
      const client = `X-Forwarded-For: 10.1.${(index >> 8) & 255}.${index & 255}`
      return Buffer.from(head(`GET ${path}`, forwarded === true ? [client] : []), 'latin1')
    })
  const statuses: Record<string, number> = {}
  const times: number[] = []
  const until = performance.now() + seconds * 1000
  let next = 0
  const client = () =>
    new Promise<void>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', send).setNoDelay(true)
      let sentAt = 0
      let usual = 0 // bytes of the last whole answer. One of the same size in one chunk is whole too, and needs no parsing
      let pending: Buffer = Buffer.alloc(0)
      function send(): void {
        sentAt = performance.now()
        if (sentAt > until) return void socket.end(resolve)
        socket.write(requests[next++ % requests.length] ?? '')
      }
      function answered(status: string): void {
        statuses[status] = (statuses[status] ?? 0) + 1
        times.push(performance.now() - sentAt)
        send()
      }
      socket.on('data', (chunk: Buffer) => {
        if (pending.length === 0 && chunk.length === usual) return answered(statusOf(chunk))
        pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
        const end = pending.indexOf('\r\n\r\n')
        if (end < 0) return
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(pending.toString('latin1', 0, end))?.[1] ?? 0)
        if (pending.length < end + 4 + length) return
        usual = pending.length
        const status = statusOf(pending)
        pending = Buffer.alloc(0)
        answered(status)
      })
      socket.on('error', reject)
    })
  // A generator that sleeps has to be woken by the server's writes, which would charge a slower server twice.
  let running = true
  const stayAwake = () => void (running && setImmediate(stayAwake))
  stayAwake()
  const began = performance.now()
  await Promise.all(Array.from({ length: connections }, client))
  const took = (performance.now() - began) / 1000
  running = false
  const [p50, p99] = [percentile(times, 0.5), percentile(times, 0.99)]
  return { requests: times.length, rate: times.length / took, p50, p99, statuses }
}

/** The three digits behind `HTTP/1.1 `. */
function statusOf(answer: Buffer): string {
  return answer.toString('latin1', 9, 12)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(JSON.stringify(await generate(JSON.parse(await text(process.stdin)) as Load)))
}

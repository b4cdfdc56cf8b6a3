/** An HTTP server for tests, on a free port of 127.0.0.1, and a client for paths as they are written. */
import { once } from 'node:events'
import {
  type Agent,
  createServer,
  type IncomingMessage,
  request,
  type RequestListener,
  type ServerOptions,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

export type Served = Awaited<ReturnType<typeof serve>>

export async function serve(listener?: RequestListener, options: ServerOptions = {}) {
  // A server that closes idle connections can do so while a busy client sends its next request on one.
  const server = createServer({ keepAliveTimeout: 0, ...options }, listener)
  // Node's queue of 511 overflows when a test opens a thousand connections on a busy machine: some are reset.
  await once(server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    server,
    port,
    url: `http://127.0.0.1:${port}`,
    /** Cuts the connections that are open. */
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export type Reply = { status: number; headers: Record<string, string | string[] | undefined>; text: string }

type Init = { method?: string; headers?: Record<string, string>; body?: string | undefined; agent?: Agent | false }

/** Sends the path exactly as written: no URL parser sees it. */
export async function raw(
  url: string,
  path: string,
  { method = 'GET', headers = {}, body, agent = false }: Init = {},
): Promise<Reply> {
  const { hostname, port } = new URL(url)
  const outgoing = request({
    hostname,
    port,
    method,
    path: Buffer.from(path).toString('latin1'),
    headers: { ...headers, ...(body !== undefined && { 'Content-Length': Buffer.byteLength(body) }) },
    agent,
    timeout: 240_000,
  })
  outgoing.on('timeout', () => outgoing.destroy(new Error('no answer in time')))
  outgoing.on('error', () => {}) // one that comes with the answer's body ends the answer
  outgoing.end(body)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  const text = (await buffer(response)).toString()
  return { status: response.statusCode ?? 0, headers: response.headers, text }
}

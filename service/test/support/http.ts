/** An HTTP server for tests, on a free port of 127.0.0.1, and a client for paths as they are written. */
import { once } from 'node:events'
import { createServer, request, type RequestListener, type ServerOptions } from 'node:http'
import type { AddressInfo } from 'node:net'

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

/** Sends what no URL parser has seen before. */
export function raw(url: string, path: string, init: { method?: string; headers?: Record<string, string> } = {}) {
  return new Promise<Reply>((resolve, reject) => {
    const { port } = new URL(url)
    request(
      { port, host: '127.0.0.1', path: Buffer.from(path).toString('latin1'), ...init, agent: false },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString(),
          }),
        )
      },
    )
      .on('error', reject)
      .end()
  })
}

/** An HTTP server for tests, on a free port of 127.0.0.1. */
import { once } from 'node:events'
import { createServer, type RequestListener, type ServerOptions } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Served = Awaited<ReturnType<typeof serve>>

export async function serve(listener?: RequestListener, options: ServerOptions = {}) {
  const server = createServer(options, listener)
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

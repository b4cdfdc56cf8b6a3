/** Loopback HTTP servers for one test. */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export async function serve(listener: RequestListener): Promise<AsyncDisposable & { url: string }> {
  // A server that closes idle connections can do so while a busy client sends its next request on one.
  const server = createServer({ keepAliveTimeout: 0 }, listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Another provider of the same chain: it passes each request on, after `onRequest` has seen it. */
export function forward(
  rpcUrl: string,
  onRequest: (request: { readonly method: string; readonly params: readonly unknown[] }) => void = () => {},
): Promise<AsyncDisposable & { url: string }> {
  return serve(async (request, response) => {
    const body = await text(request)
    onRequest(JSON.parse(body) as Parameters<typeof onRequest>[0])
    const answer = await fetch(rpcUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    response.end(await answer.text())
  })
}

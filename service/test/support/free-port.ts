/** Returns a port of 127.0.0.1 that is free at the moment, for programs that cannot choose one themselves. */
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'

export const freePort = (): Promise<number> => bound(0)

/** Returns the first of several free ports in a row. */
export async function freePorts(count: number): Promise<number> {
  for (;;) {
    const first = await freePort()
    const others = await Promise.allSettled(Array.from({ length: count - 1 }, (_, index) => bound(first + 1 + index)))
    if (others.every(({ status }) => status === 'fulfilled')) return first
  }
}

/** Listens on a port for a moment, where it is free. */
async function bound(wanted: number): Promise<number> {
  const server = createServer().listen(wanted, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

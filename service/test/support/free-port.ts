/** Returns a port of 127.0.0.1 that is free at the moment, for programs that cannot choose one themselves. */
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Returns the first of several free ports in a row. */
export async function freePorts(count: number): Promise<number> {
  for (;;) {
    const first = await freePort()
    const others = Array.from({ length: count - 1 }, (_, index) => first + 1 + index)
    const free = await Promise.all(others.map(isFree))
    if (free.every(Boolean)) return first
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  const listening = once(server, 'listening').then(
    () => true,
    () => false,
  )
  server.listen(port, '127.0.0.1')
  if (!(await listening)) return false
  server.close()
  await once(server, 'close')
  return true
}

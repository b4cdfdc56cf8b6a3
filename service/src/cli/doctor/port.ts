/** Ports of this machine and of others. */
import { connect, createServer } from 'node:net'

export async function isListening(host: string, port: number, timeoutMs = 1_000): Promise<boolean> {
  const socket = connect({ port, host, timeout: timeoutMs })
  try {
    return await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true))
      for (const event of ['error', 'timeout', 'close']) socket.once(event, () => resolve(false))
    })
  } finally {
    socket.destroy()
  }
}

/** Returns null when this process may listen at a port, else the code of the error, such as EADDRINUSE. */
export function bindError(host: string, port: number): Promise<string | null> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)))
  })
}

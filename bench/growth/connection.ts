/** One keep-alive connection on loopback that speaks just enough HTTP/1.1 to cost less than any server. It sends one request at a time. */
import { once } from 'node:events'
import { connect } from 'node:net'

type Answer = { readonly status: string; readonly text: () => string }
export type Connection = { readonly ask: (request: string) => Promise<Answer>; readonly close: () => void }

/** A request as it goes over the wire; with a body it is a POST. */
export function requestOf(path: string, headers: readonly string[] = [], body?: string): string {
  const length =
    body === undefined ? [] : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`]
  const lines = [`${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1`, 'Host: 127.0.0.1', ...headers, ...length]
  return `${lines.join('\r\n')}\r\n\r\n${body ?? ''}`
}

/** Answers must have a Content-Length, as those of the service do. */
export async function openConnection(port: number): Promise<Connection> {
  const socket = connect(port, '127.0.0.1').setNoDelay(true)
  await once(socket, 'connect')
  let settle: { resolve: (answer: Answer) => void; reject: (error: Error) => void } | undefined
  let pending: Buffer = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
    const end = pending.indexOf('\r\n\r\n')
    if (end < 0) return
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(pending.toString('latin1', 0, end))?.[1] ?? Number.NaN)
    if (Number.isNaN(length)) return void socket.destroy(new Error('An answer has no Content-Length.'))
    if (pending.length < end + 4 + length) return
    const answer = pending
    pending = Buffer.alloc(0)
    settle?.resolve({ status: answer.toString('latin1', 9, 12), text: () => answer.toString() })
  })
  const fail = (error: Error) => settle?.reject(error)
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('The service closed the connection.')))
  return {
    ask: (request) =>
      new Promise((resolve, reject) => {
        settle = { resolve, reject }
        socket.write(request)
      }),
    close: () => void socket.destroy(),
  }
}

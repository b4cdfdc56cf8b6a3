/** For tests: a provider that hands on what a real one says, except where the test has it lie. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export type RpcCall = Readonly<{ id: number; method: string; params: readonly unknown[] }>

export type LyingProxy = Readonly<{
  url: string
  /** What it says instead, given what is true. */
  tell: (lie: (call: RpcCall, result: unknown) => unknown) => void
  /** How often each method was asked for. */
  asked: Map<string, number>
  close: () => void
}>

export async function startProxy(target: string): Promise<LyingProxy> {
  const asked = new Map<string, number>()
  let lie: (call: RpcCall, result: unknown) => unknown = (_call, result) => result

  async function answer(body: string): Promise<string> {
    const calls = JSON.parse(body) as RpcCall | RpcCall[]
    const response = await fetch(target, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    const answers = (await response.json()) as { id: number; result?: unknown } | { id: number; result?: unknown }[]
    const told = [answers].flat().map((one) => {
      const call = [calls].flat().find(({ id }) => id === one.id)
      if (call === undefined) return one
      asked.set(call.method, (asked.get(call.method) ?? 0) + 1)
      return 'result' in one ? { ...one, result: lie(call, one.result) } : one
    })
    return JSON.stringify(Array.isArray(answers) ? told : told[0])
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      answer(Buffer.concat(chunks).toString()).then(
        (text) => response.end(text),
        () => response.destroy(),
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    asked,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tell: (next) => (lie = next),
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

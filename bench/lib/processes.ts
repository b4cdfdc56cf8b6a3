/** Node processes of a benchmark, each on one core, and the arithmetic of interleaved rounds. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { run } from './program.ts'

export type BenchServer = {
  readonly port: number
  readonly pid: number
  /** Returns what it has printed. */
  readonly said: () => string
  readonly stop: () => Promise<void>
}

/** Starts a server script on the first core, unless another is named, and waits for the line with its port. */
export async function startServer(
  script: string,
  args: readonly string[],
  { input, core = 0 }: { readonly input?: string; readonly core?: number } = {},
): Promise<BenchServer> {
  const running = run({ command: process.execPath, args: [script, ...args], core, input })
  const [, port] = await running.line(/^port (\d+)$/m, 60_000)
  return { port: Number(port), pid: running.pid, said: running.said, stop: running.stop }
}

/** Serves on loopback until SIGTERM, and prints the line with the port. */
export function servePort(listener: RequestListener): void {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1', () => console.log(`port ${(server.address() as AddressInfo).port}`))
  process.once('SIGTERM', () => process.exit(0))
}

export const median = (values: readonly number[]): number => percentile(values, 0.5)

/** Returns the value below which this share of them lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

/**
 * Load by `wrk` of Debian, whose cost per request is a small part of a server's. If it is not installed, the generator of `load.ts` runs.
 * Processor time of the server counts only itself, so that a generator on the same machine changes it little.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { applyLoad, type LoadResult } from './load.ts'
import { pinned } from './program.ts'

const program = '/usr/bin/wrk'

export const generator = existsSync(program) ? 'wrk' : 'a generator in Node, for want of wrk'

/**
 * Sends GET requests over these paths in turn, from the second core, for whole seconds. Throws when an answer is not 2xx or 3xx, or a
 * connection breaks. LuaJIT takes 65,536 paths at most.
 */
export async function applyWrk(load: {
  readonly port: number
  readonly paths: readonly string[]
  readonly connections: number
  readonly seconds: number
}): Promise<Omit<LoadResult, 'statuses'>> {
  const { port, paths, connections, seconds } = load
  if (!existsSync(program)) {
    const { statuses, ...result } = await applyLoad(load)
    if (Object.keys(statuses).join() !== '200') throw new Error(`unexpected statuses ${JSON.stringify(statuses)}`)
    return result
  }
  const folder = await mkdtemp(join(tmpdir(), 'touchstone-wrk-'))
  try {
    const script = join(folder, 'paths.lua')
    await writeFile(script, scriptOf(paths))
    const args = `-t 1 -c ${connections} -d ${seconds}s --latency --timeout 20s http://127.0.0.1:${port}`.split(' ')
    const [command, ...rest] = pinned(1, [program, '-s', script, ...args])
    const { stdout } = await promisify(execFile)(command, rest, { timeout: (seconds + 30) * 1_000 })
    const requests = Number(/(\d+) requests in/.exec(stdout)?.[1])
    const rate = Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1])
    if (!(requests > 0) || /Non-2xx|Socket errors/.test(stdout)) throw new Error(`wrk: ${stdout}`)
    return { requests, rate, p50: millisecondsOf('50%', stdout), p99: millisecondsOf('99%', stdout) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function millisecondsOf(percentile: string, report: string): number {
  const [, value, unit = ''] = new RegExp(`^ *${percentile} +([\\d.]+)(us|ms|s)$`, 'm').exec(report) ?? []
  return Number(value) * ({ us: 0.001, ms: 1, s: 1000 }[unit] ?? Number.NaN)
}

/** The requests are made once, so that one costs a look into a table. */
function scriptOf(paths: readonly string[]): string {
  return `local requests, at = {}, 0
function init(args)
  for _, path in ipairs({ ${paths.map((path) => JSON.stringify(path)).join(', ')} }) do
    requests[#requests + 1] = wrk.format('GET', path)
  end
end
function request()
  at = at % #requests + 1
  return requests[at]
end
`
}

/**
 * The peer of `bench:index`: Ponder, from the fixture package `bench/index/ponder` with its own lock file. It runs in a temporary copy, so
 * that nothing it writes stays behind.
 */
import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Hex } from '@touchstone/verdict'
import { run, type Running } from '../lib/program.ts'

const fixture = fileURLToPath(new URL('ponder', import.meta.url))

export type PonderOptions = {
  readonly rpcUrl: string
  readonly contract: Hex
  readonly databaseUrl: string
  /** Each start needs a new one; what it has read of the chain is kept in `ponder_sync` beside it. */
  readonly schema: string
}

/** Installs the fixture by its lock file if that has not been done yet. No script of a package runs. */
export async function preparePonder(): Promise<{
  start: (options: PonderOptions) => Running
  close: () => Promise<void>
}> {
  const wanted = (
    JSON.parse(await readFile(join(fixture, 'package.json'), 'utf8')) as { dependencies: { ponder: string } }
  ).dependencies.ponder
  const installed = await readFile(join(fixture, 'node_modules/ponder/package.json'), 'utf8').then(
    (text) => (JSON.parse(text) as { version: string }).version,
    () => null,
  )
  if (installed !== wanted) {
    console.log(`installing Ponder ${wanted} …`)
    // Not «npm ci»: that refuses a lock file made where the binaries of other platforms cannot be had.
    const options = ['install', '--no-save', '--prefix', fixture, '--ignore-scripts', '--no-audit', '--no-fund']
    await promisify(execFile)('npm', options, { timeout: 180_000 })
  }
  const root = await mkdtemp(join(tmpdir(), 'touchstone-bench-ponder-'))
  for (const part of ['package.json', 'ponder.config.ts', 'ponder.schema.ts', 'src'])
    await cp(join(fixture, part), join(root, part), { recursive: true })
  await symlink(join(fixture, 'node_modules'), join(root, 'node_modules'))
  return { start: (options) => start(root, options), close: () => rm(root, { recursive: true, force: true }) }
}

function start(root: string, { rpcUrl, contract, databaseUrl, schema }: PonderOptions): Running {
  const program = join(root, 'node_modules/ponder/dist/esm/bin/ponder.js')
  return run({
    command: process.execPath,
    args: [program, 'start', '--root', root, '--schema', schema, '--port', '0', '--hostname', '127.0.0.1'].concat([
      '--log-level',
      'warn',
      '--log-format',
      'json',
    ]),
    core: 0,
    cwd: root,
    env: {
      BENCH_RPC_URL: rpcUrl,
      BENCH_CONTRACT: contract,
      DATABASE_URL: databaseUrl,
      NODE_ENV: 'production',
      PONDER_TELEMETRY_DISABLED: 'true',
    },
  })
}

/**
 * `npm run bench:idle` measures an `npm start` that gets no request, with the embedded database and with PostgreSQL. It prints processor
 * time as a share of a core, resident memory, and its peak since the start. anvil, which a service in production does not run, is printed
 * apart. `--settle S` seconds before it is measured (40), `--seconds S` measured (20).
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { readOptions } from '../../scripts/options.ts'
import { bounded } from '../lib/bounded.ts'
import { costOf, ownCostOf, residentMegabytes, warnWhenBusy } from '../lib/cost.ts'
import { createOwnDatabase } from '../lib/own-database.ts'
import { run } from '../lib/program.ts'

const { values: options } = readOptions({
  options: { settle: { type: 'string', default: '40' }, seconds: { type: 'string', default: '20' } },
})
const [settle, seconds] = [Number(options.settle), Number(options.seconds)]
if (!(settle >= 0 && seconds > 0)) throw new Error('--settle and --seconds take seconds, such as 40 and 20.')
const root = new URL('../../', import.meta.url).pathname
const ports = { VERIFICATION_PORT: '9180', GATEWAY_PORT: '9181', GRAPHQL_PORT: '9182', LOCAL_CHAIN_PORT: '9185' }

await bounded((2 * (settle + seconds) + 240) * 1_000, async (made) => {
  await warnWhenBusy()
  const database = await createOwnDatabase()
  made.defer(() => database.drop())
  const { scripts } = JSON.parse(await readFile(`${root}package.json`, 'utf8')) as { scripts: { start: string } }
  console.log('                    processor    resident        peak    anvil')
  for (const [name, env] of [
    ['embedded database', {}],
    ['PostgreSQL', { DATABASE_URL: database.url }],
  ] as const) {
    const dataDir = await mkdtemp(join(tmpdir(), 'touchstone-idle-'))
    made.defer(() => rm(dataDir, { recursive: true, force: true }))
    const start = { command: 'sh', args: ['-c', scripts.start], cwd: root } // it ends with `exec`
    const program = run({ ...start, env: { ...env, ...ports, DATA_DIR: dataDir } })
    made.defer(program.stop)
    await program.line(/Ctrl-C/, 120_000)
    await delay(settle * 1_000)
    const before = { all: costOf(program.pid), own: ownCostOf(program.pid) }
    await delay(seconds * 1_000)
    const own = ownCostOf(program.pid)
    const share = (used: number) => `${((100 * used) / seconds).toFixed(1)} %`
    const used = own.cpuSeconds - before.own.cpuSeconds
    const others = costOf(program.pid).cpuSeconds - before.all.cpuSeconds - used
    const memory = [residentMegabytes(program.pid), own.peakMegabytes].map((megabytes) => `${megabytes.toFixed(0)} MB`)
    console.log(
      [name.padEnd(18), ...[share(used), ...memory].map((cell) => cell.padStart(11)), share(others).padStart(8)].join(
        ' ',
      ),
    )
    await program.stop()
  }
})

/**
 * `npm run chaos`: a fleet of real processes under load while something is broken on purpose, and what must hold then.
 * `npm run chaos -- kill-instance redis-gone` runs these faults, `--list` names them, `--seconds` is how long each lasts (10).
 * `--plant` adds a defect or does damage, which the checks must find: the exit code is then 1.
 */
import { readOptions } from '../../scripts/options.ts'
import { bounded } from '../lib/bounded.ts'
import { NotRun } from './faults/fault.ts'
import { faults } from './faults/faults.ts'
import { citusLacks } from '../../service/test/support/database/citus-cluster.ts'
import { openFleet } from './fleet.ts'
import { plants, together } from './plants.ts'
import { runRow, type Row } from './row.ts'

const { values: options, positionals } = readOptions({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '10' },
    list: { type: 'boolean', default: false },
    plant: { type: 'string' },
    verbose: { type: 'boolean', default: false },
  },
})

if (options.list) {
  for (const [name, { about }] of Object.entries(faults)) console.log(`${name.padEnd(20)} ${about}`)
  process.exit(0)
}
const lacks = citusLacks()
const isPossible = (name: string) => faults[name]?.onCluster !== true || lacks === null
const names = positionals.length > 0 ? positionals : Object.keys(faults).filter(isPossible)
const seconds = Number(options.seconds)
const unknown = names.filter((name) => faults[name] === undefined)
if (unknown.length > 0 || !(seconds > 0 && seconds <= 600)) {
  console.error(
    unknown.length > 0
      ? `There is no fault ${unknown.join(', ')}; see npm run chaos -- --list`
      : '--seconds must be a number above 0 and at most 600',
  )
  process.exit(1)
}
const planted = (options.plant?.split(',') ?? []).flatMap((name) => plants[name] ?? [])
if (planted.length !== (options.plant?.split(',') ?? []).length) {
  console.error(`--plant is some of ${Object.keys(plants).join(', ')}, separated by commas`)
  process.exit(1)
}
const plant = together(planted)

await bounded(names.length * (seconds + 240) * 1_000, async (made) => {
  const failed: string[] = []
  console.log(`two instances, ${seconds} s of each fault\n`)
  if (positionals.length === 0 && lacks !== null) console.log(`Faults of a Citus cluster are left out: ${lacks}.\n`)
  console.log(line(['fault', 'asked', 'at once', 'elsewhere', 'neither', 'back after', 'promises']))
  for (const onCluster of [false, true]) {
    const own = made.use(new AsyncDisposableStack())
    failed.push(...(await runFaults(own, onCluster)))
    await own.disposeAsync()
  }
  console.log(`\n${names.length - failed.length} of ${names.length} faults survived`)
  if (failed.length > 0) throw new Error(`Not survived: ${failed.join(', ')}.`)
})

/** Runs the faults of one kind of database on a fleet of their own. Returns the names of those that were not survived. */
async function runFaults(made: AsyncDisposableStack, onCluster: boolean): Promise<string[]> {
  const own = names.filter((name) => (faults[name]?.onCluster ?? false) === onCluster)
  const failed = own.filter((name) => !isPossible(name))
  for (const name of failed) notRun(name, lacks ?? '')
  const possible = own.filter(isPossible)
  if (possible.length === 0) return failed
  const fleet = await openFleet(made, { onCluster })
  fleet.chain.begin()
  for (const name of possible) {
    const fault = faults[name]
    if (fault === undefined) continue
    try {
      const row = await runRow(fleet, name, fault, { ms: seconds * 1_000, plant })
      print(row)
      if (row.broken.length > 0) failed.push(name)
    } catch (error) {
      if (!(error instanceof NotRun)) throw error
      notRun(name, error.message)
      failed.push(name)
    }
  }
  return failed
}

const notRun = (name: string, why: string) => console.log(`${name.padEnd(22)} not run: ${why}`)

function print({ name, asked, backAfter, broken, refusals, remark, troubles }: Row): void {
  const { atOnce, elsewhere, not } = asked
  const cells = [atOnce + elsewhere + not, atOnce, elsewhere, not].map(String)
  console.log(line([name, ...cells, `${backAfter.toFixed(1)} s`, broken.length === 0 ? 'kept' : 'BROKEN']))
  for (const note of [remark, refusals && `refused: ${refusals}`, ...broken])
    if (note !== '') console.log(`    ${note.slice(0, 600)}`)
  if (broken.length > 0 || options.verbose)
    for (const trouble of troubles) console.log(`      ${trouble.slice(0, 300)}`)
}

function line([name = '', ...cells]: readonly string[]): string {
  return name.padEnd(22) + cells.map((cell) => cell.padStart(11)).join('')
}

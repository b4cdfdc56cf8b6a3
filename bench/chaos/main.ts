/**
 * `npm run chaos`: a fleet of real processes under load while something is broken on purpose, and what must hold then.
 * `npm run chaos -- kill-instance redis-gone` runs these faults, `--list` names them, `--seconds` is how long each lasts (10).
 * `--plant` adds a defect or does damage, which the checks must find: the exit code is then 1.
 */
import { parseArgs } from 'node:util'
import { bounded } from '../lib/bounded.ts'
import { faults, NotRun } from './faults/faults.ts'
import { openFleet } from './fleet.ts'
import { plants, together } from './plants.ts'
import { runRow, type Row } from './row.ts'

const { values: options, positionals } = parseArgs({
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
const names = positionals.length > 0 ? positionals : Object.keys(faults)
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
  const fleet = await openFleet(made)
  fleet.chain.begin()
  const failed: string[] = []
  console.log(`two instances, ${seconds} s of each fault\n`)
  console.log(line(['fault', 'asked', 'at once', 'elsewhere', 'neither', 'back after', 'promises']))
  for (const name of names) {
    const fault = faults[name]
    if (fault === undefined) continue
    try {
      const row = await runRow(fleet, name, fault, { ms: seconds * 1_000, plant })
      print(row)
      if (row.broken.length > 0) failed.push(name)
    } catch (error) {
      if (!(error instanceof NotRun)) throw error
      console.log(`${name.padEnd(22)} not run: ${error.message}`)
      failed.push(name)
    }
  }
  console.log(`\n${names.length - failed.length} of ${names.length} faults survived`)
  if (failed.length > 0) throw new Error(`Not survived: ${failed.join(', ')}.`)
})

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

/**
 * `npm run soak` puts minutes of mixed load on one service with every role. It is 90 % keyless reads, 5 % taps, 3 % GraphQL, 1 % MCP, 1 %
 * paid, at 60 % of a capacity that a short ramp of the same mix finds first. Arrivals do not wait for answers. Exit code 1 when an answer
 * is not what was asked for, or when memory grows: the service collects its garbage every 20 s (`soak/gc-hook.ts`), and the median of its
 * resident memory, looked at each second, is in the last third of the time at most 1.1 times that of the second third. `--minutes M` (15),
 * `--rate R` requests a second instead of the ramp.
 */
import { readOptions } from '../../scripts/options.ts'
import { bounded } from '../lib/bounded.ts'
import { residentMegabytes, warnWhenBusy } from '../lib/cost.ts'
import { openFleet } from '../chaos/fleet.ts'
import { median, percentile } from '../lib/processes.ts'
import { kinds, openMix, type Kind } from './mix.ts'
import { arrive, type Arrived } from './arrivals.ts'

const { values: options } = readOptions({
  options: { minutes: { type: 'string', default: '15' }, rate: { type: 'string' } },
})
const minutes = numberOf('minutes', options.minutes)
const givenRate = options.rate === undefined ? undefined : numberOf('rate', options.rate)
const share = 0.6
const mostGrowth = 1.1
/** Long enough that a queue of the slowest kind, payments, shows. */
const rampSeconds = 8
/** Limits of a step of the ramp, in milliseconds: 99 of 100 reads, and of every other kind. */
const mostReadMs = 250
const mostOtherMs = 2_000

await bounded((minutes * 60 + 300) * 1_000, async (made) => {
  await warnWhenBusy()
  const unlimited = Object.fromEntries(
    ['ASSET', 'TAP', 'GATEWAY', 'GRAPHQL', 'MCP'].map((name) => [`RATE_LIMIT_${name}`, '0']),
  )
  const fleet = await openFleet(made, { instances: ['a'], tokens: 1_000, tags: 200, payers: 50, env: unlimited })
  fleet.chain.begin()
  const [service] = fleet.instances
  if (service === undefined) throw new Error('There is no instance.')
  const hook = new URL('gc-hook.ts', import.meta.url).href
  fleet.wishes.set(service.name, { nodeFlags: ['--expose-gc', '--import', hook] })
  await service.start()
  const mix = openMix(fleet, service)
  await arrive({ perSecond: 20, seconds: 3, next: mix.next }) // connections, caches, compiled code

  const rate = givenRate ?? Math.max(10, Math.floor(share * (await capacity(mix.next))))
  console.log(
    `\n${minutes} minutes at ${rate} requests a second${givenRate === undefined ? `, ${share * 100} % of what it can` : ''}`,
  )
  const memory: number[] = []
  const watch = setInterval(() => memory.push(residentMegabytes(service.pid())), 1_000)
  const arrived = await arrive({ perSecond: rate, seconds: minutes * 60, next: mix.next })
  clearInterval(watch)
  print(arrived)
  judge(arrived, memory, service.crashes())
})

/** Doubles the rate until answers come late or wrong; then what was still answered in time. */
async function capacity(next: () => { kind: Kind; run: () => Promise<void> }): Promise<number> {
  let held = 20
  for (let perSecond = 50; perSecond <= 20_000; perSecond = Math.round(perSecond * 1.5)) {
    const { done, failures, took, late } = await arrive({ perSecond, seconds: rampSeconds, next })
    const p99 = new Map(kinds.map((kind) => [kind, percentile(took.get(kind) ?? [0], 0.99)]))
    console.log(
      `ramp: ${perSecond}/s asked, ${Math.round(done / rampSeconds)}/s answered, p99 ${[...p99].map(([kind, ms]) => `${kind} ${ms.toFixed(0)}`).join(', ')} ms, sent ${late.toFixed(0)} ms late`,
    )
    const isSlow = kinds.some((kind) => (p99.get(kind) ?? 0) > (kind === 'read' ? mostReadMs : mostOtherMs))
    if (failures.size > 0 || isSlow || late > mostReadMs) break
    held = perSecond
  }
  return held
}

function print({ took, done, late }: Arrived): void {
  console.log(
    `\n${done} answers; the latest was sent ${late.toFixed(0)} ms after its time; ms from the moment it was due\n`,
  )
  console.log(
    ['kind', 'answers', 'p50', 'p99', 'p99.9']
      .map((cell, column) => (column === 0 ? cell.padEnd(10) : cell.padStart(10)))
      .join(''),
  )
  for (const kind of kinds) {
    const times = took.get(kind) ?? []
    const cells = [String(times.length), ...[0.5, 0.99, 0.999].map((at) => percentile(times, at).toFixed(1))]
    console.log(kind.padEnd(10) + cells.map((cell) => cell.padStart(10)).join(''))
  }
}

function judge({ failures }: Arrived, memory: readonly number[], crashes: number): void {
  const at = (part: number) =>
    (memory[Math.min(memory.length - 1, Math.round(part * (memory.length - 1)))] ?? 0).toFixed(0)
  const third = Math.floor(memory.length / 3)
  const [second, last] = [median(memory.slice(third, 2 * third)), median(memory.slice(2 * third))]
  const slope = (60 * (last - second)) / third
  console.log(
    `\nresident memory: ${at(0)} MB at first, ${[0.25, 0.5, 0.75].map(at).join(', ')} at the quartiles, ${at(1)} at the end\n` +
      `median of the last third ${last.toFixed(0)} MB = ×${(last / second).toFixed(2)} of the second third (at most ×${mostGrowth}), ${slope >= 0 ? '+' : ''}${slope.toFixed(1)} MB a minute`,
  )
  const errors = [...failures.values()].reduce((sum, count) => sum + count, 0)
  console.log(`errors: ${errors}; the service ended by itself ${crashes} times`)
  for (const [what, count] of [...failures].slice(0, 10)) console.log(`  ×${count} ${what}`)
  if (errors > 0 || crashes > 0) throw new Error('Not every answer was what was asked for.')
  if (!(last <= mostGrowth * second)) throw new Error('Memory grows.')
}

function numberOf(name: string, text: string): number {
  const value = Number(text)
  if (value > 0 && value <= 100_000) return value
  console.error(`--${name} must be a number above 0`)
  return process.exit(1)
}

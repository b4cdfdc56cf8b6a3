/**
 * `npm run bench:fleet`: keyless reads of one worker and of two, in interleaved rounds: requests a second, processor time of each, memory.
 * On fewer than four cores the load takes what the second worker needs: then all workers are kept on the other core, and processor time per
 * request is stated, with what two processes cost that share a core and its caches.
 */
import { availableParallelism } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { bounded } from '../lib/bounded.ts'
import { openFleet } from '../chaos/fleet.ts'
import type { Instance } from '../chaos/services/instance.ts'
import { costOf, warnWhenBusy } from '../lib/cost.ts'
import { median } from '../lib/processes.ts'
import { applyWrk, generator } from '../lib/wrk.ts'
import { readOptions } from '../../scripts/options.ts'

readOptions({})

const rounds = 11
const seconds = 2
const connections = 64
const isSmall = availableParallelism() < 4
const tokens = 1_000
/** Rate that two workers must reach, as a multiple of one worker's, where there are cores enough. */
const leastRatio = 1.6

/** Share of a core that the other roles of a process take without requests. It is no cost of a request. */
const idle = new Map<Instance, number>()

type Measured = { readonly rate: number; readonly micros: number }

await bounded(240_000, async (made) => {
  await warnWhenBusy()
  const env = { RATE_LIMIT_ASSET: '1000000000', CHAIN_MAX_HEAD_AGE_SECONDS: '0' }
  const fleet = await openFleet(made, {
    instances: ['one', 'two'],
    tokens,
    tags: 1,
    payers: 1,
    env,
    core: isSmall ? 0 : undefined,
  })
  fleet.wishes.set('two', { args: ['--workers', '2'] })
  for (const instance of fleet.instances) await instance.start()
  const [one, two] = fleet.instances
  if (one === undefined || two === undefined) throw new Error('There are no instances.')
  for (const instance of [one, two]) {
    await measure(instance, 6) // until its code is compiled
    idle.set(instance, await idleShare(instance))
  }
  const measured: { one: Measured[]; two: Measured[] } = { one: [], two: [] }
  for (let round = 0; round < rounds; round += 1) {
    measured.one.push(await measure(one, seconds))
    measured.two.push(await measure(two, seconds))
  }
  const middle = (name: 'one' | 'two', key: keyof Measured) => median(measured[name].map((each) => each[key]))
  for (const name of ['one', 'two'] as const) {
    const [workers, instance] = name === 'one' ? [1, one] : [2, two]
    const memory = costOf(instance.pid()).peakMegabytes
    console.log(
      `${name.padEnd(6)}${Math.round(middle(name, 'rate')).toLocaleString('en').padStart(10)}/s   ${middle(name, 'micros').toFixed(1).padStart(7)} µs of processor each   ` +
        `${(memory / workers).toFixed(0)} MB a worker at most`,
    )
  }
  judge(
    median(measured.two.map(({ rate }, round) => rate / (measured.one[round]?.rate ?? Number.NaN))),
    median(measured.two.map(({ micros }, round) => micros / (measured.one[round]?.micros ?? Number.NaN))),
  )
})

async function idleShare({ pid }: Instance): Promise<number> {
  const before = costOf(pid()).cpuSeconds
  await delay(seconds * 1_000)
  return (costOf(pid()).cpuSeconds - before) / seconds
}

async function measure(instance: Instance, forSeconds: number): Promise<Measured> {
  const cpu = () => costOf(instance.pid()).cpuSeconds
  const paths = Array.from({ length: tokens }, (_, index) => `/api/asset/${index + 1}`)
  const [before, began] = [cpu(), performance.now()]
  const port = Number(new URL(instance.urls().verification).port)
  const { requests, rate } = await applyWrk({ port, paths, connections, seconds: forSeconds })
  const spent = cpu() - before - ((idle.get(instance) ?? 0) * (performance.now() - began)) / 1_000
  return { rate, micros: (spent * 1_000_000) / requests }
}

function judge(rates: number, costs: number): void {
  console.log(
    `\nload by ${generator}; two beside one: ×${rates.toFixed(2)} of the rate, ×${costs.toFixed(2)} of the processor time of a request`,
  )
  if (isSmall) console.log('Both workers had one core, because the load needs the other: their rate says nothing here.')
  else if (rates < leastRatio) throw new Error(`Two workers answer less than ${leastRatio} times what one does.`)
}

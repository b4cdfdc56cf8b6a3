/**
 * `npm run bench:fleet`: keyless reads of one worker and of two, in interleaved rounds: requests a second, processor time of each, memory.
 * Two workers are `serve --workers 2` where this version has it, else two processes on ports of their own. On fewer than four cores the
 * load takes what the second worker needs: then all workers are kept on the other core, and only processor time per request is judged.
 */
import { execFileSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { bounded } from './bounded.ts'
import { openFleet } from './chaos/fleet.ts'
import type { Instance } from './chaos/instance.ts'
import { costOf, warnWhenBusy } from './cost.ts'
import { applyLoad } from './load.ts'
import { median } from './processes.ts'

const rounds = 5
const seconds = 3
const connections = 64
const isSmall = availableParallelism() < 4
const tokens = 1_000
/** What a request of two workers may cost of one worker's, and where there are cores enough, what they must answer at least. */
const mostCost = 1.25
const leastRatio = 1.6
const cli = fileURLToPath(new URL('../service/src/cli.ts', import.meta.url))

/** What the other roles of a process take of a core whether anybody asks or not; it is no cost of a request. */
const idle = new Map<Instance, number>()

type Measured = { readonly rate: number; readonly micros: number; readonly p99: number }

await bounded(240_000, async (made) => {
  await warnWhenBusy()
  const hasWorkers = execFileSync(process.execPath, [cli, 'serve', '--help'], { encoding: 'utf8' }).includes(
    '--workers',
  )
  const names = hasWorkers ? ['one', 'two'] : ['one', 'two', 'other']
  const env = { RATE_LIMIT_ASSET: '1000000000', CHAIN_MAX_HEAD_AGE_SECONDS: '0' }
  const fleet = await openFleet(made, {
    instances: names,
    tokens,
    tags: 1,
    payers: 1,
    env,
    core: isSmall ? 0 : undefined,
  })
  if (hasWorkers) fleet.wishes.set('two', { args: ['--workers', '2'] })
  for (const instance of fleet.instances) await instance.start()
  const [one, ...two] = fleet.instances
  if (one === undefined) throw new Error('There is no instance.')
  console.log(
    `two workers: ${hasWorkers ? 'serve --workers 2' : 'two processes, for there is no serve --workers here'}\n`,
  )

  await measure([one], 6) // until its code is compiled
  await measure(two, 6)
  idle.set(one, await idleShare(one))
  for (const instance of two) idle.set(instance, await idleShare(instance))
  const measured: { one: Measured[]; two: Measured[] } = { one: [], two: [] }
  for (let round = 0; round < rounds; round += 1) {
    measured.one.push(await measure([one], seconds))
    measured.two.push(await measure(two, seconds))
  }
  const middle = (name: 'one' | 'two', key: keyof Measured) => median(measured[name].map((each) => each[key]))
  for (const name of ['one', 'two'] as const) {
    const [workers, instances] = name === 'one' ? [1, [one]] : [2, two]
    const memory = instances.reduce((sum, { pid }) => sum + costOf(pid()).peakMegabytes, 0)
    console.log(
      `${name.padEnd(6)}${Math.round(middle(name, 'rate')).toLocaleString('en').padStart(10)}/s   ${middle(name, 'micros').toFixed(1).padStart(7)} µs of processor each   ` +
        `p99 ${middle(name, 'p99').toFixed(1)} ms   ${(memory / workers).toFixed(0)} MB a worker at most`,
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

/** Each of several processes gets its part of the connections. */
async function measure(instances: readonly Instance[], forSeconds: number): Promise<Measured> {
  const cpu = () => instances.reduce((sum, { pid }) => sum + costOf(pid()).cpuSeconds, 0)
  const paths = Array.from({ length: tokens }, (_, index) => `/api/asset/${index + 1}`)
  const [before, began] = [cpu(), performance.now()]
  const port = instances.map((instance) => Number(new URL(instance.urls().verification).port))
  const { requests, rate, p99, statuses } = await applyLoad({ port, paths, connections, seconds: forSeconds })
  const without = instances.reduce((sum, instance) => sum + (idle.get(instance) ?? 0), 0)
  const spent = cpu() - before - (without * (performance.now() - began)) / 1_000
  if (Object.keys(statuses).join() !== '200') throw new Error(`unexpected statuses ${JSON.stringify(statuses)}`)
  return { rate, micros: (spent * 1_000_000) / requests, p99 }
}

function judge(rates: number, costs: number): void {
  console.log(
    `\ntwo beside one: ×${rates.toFixed(2)} of the rate, ×${costs.toFixed(2)} of the processor time of a request`,
  )
  if (isSmall)
    console.log(
      `The load generator is the limit on so few cores: judged by processor time per request, at most ×${mostCost}.`,
    )
  if (costs > mostCost) throw new Error('A request costs two workers too much.')
  if (!isSmall && rates < leastRatio) throw new Error(`Two workers answer less than ${leastRatio} times what one does.`)
}

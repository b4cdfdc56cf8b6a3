/** One fault from beginning to end: a steady load before, while it lasts and after, then what must hold. */
import { setTimeout as delay } from 'node:timers/promises'
import { checkAfter, lookBefore } from './checks.ts'
import type { Fault } from './faults/fault.ts'
import type { Fleet } from './fleet.ts'
import { listenTo } from './load/listeners.ts'
import { beginLoad, type Load } from './load/load.ts'
import { createRecord, kinds, type Outcome, type Record } from './record.ts'

export type Row = {
  readonly name: string
  readonly counts: { readonly [Name in Outcome]: number }
  readonly asked: Record['asked']
  readonly refusals: string
  /** Seconds from the end of the fault to the last request that was refused or not answered. */
  readonly backAfter: number
  readonly remark: string
  readonly broken: readonly string[]
  readonly troubles: readonly string[]
}
/** A defect made on purpose, which the checks must find. `during` begins it beside the fault and returns how it ends; `after` follows the load. */
export type Plant = {
  /** Flags of Node for every instance. */
  readonly nodeFlags?: readonly string[]
  readonly during?: (fleet: Fleet) => () => void
  readonly after?: (fleet: Fleet, load: Load) => Promise<void>
}

/** The time without a refusal before and after a fault. A fault that is shorter needs only its own length. */
const calmMs = 3_000
/** The service must be back within this time, without a hand. A busy machine needs most of it; a hang needs more. */
const backWithinMs = 120_000

export async function runRow(
  fleet: Fleet,
  name: string,
  fault: Fault,
  { ms, plant }: { readonly ms: number; readonly plant?: Plant },
): Promise<Row> {
  await using made = new AsyncDisposableStack()
  const calm = Math.min(calmMs, ms)
  await fault.prepare?.(fleet, made)
  const record = createRecord()
  const crashesBefore = fleet.instances.map((instance) => instance.crashes())
  await dress(fleet, fault, plant)
  await indexed(fleet)
  const before = await lookBefore(fleet)
  const listeners = fleet.instances.map((instance) => listenTo(instance, fleet.key))
  await settled(() => listeners.every(({ setUps }) => setUps() > 0), 10_000)
  const load = beginLoad(fleet, record, { run: `${name}-${before.outbox}` })
  try {
    if (!(await steady(record, calm)))
      record.broke(`before the fault: no ${calm / 1_000} s without a refusal in ${backWithinMs / 1_000} s`)
    const undo = plant?.during?.(fleet)
    const remark = (await fault.strike(fleet, ms, record)) ?? ''
    undo?.()
    const mended = performance.now()
    const names = fleet.instances.map((instance) => instance.name)
    // The taps that were kept back are checked too, however slow the load was.
    const isBack = () =>
      load.taps.stale.size > 0 &&
      record.silentSince(mended, kinds, names).length === 0 &&
      performance.now() - mended > record.badUntil(mended) * 1_000 + calm
    await settled(isBack, backWithinMs + calm)
    const silent = record.silentSince(mended, kinds, names)
    if (silent.length > 0) record.broke(`not back ${backWithinMs / 1_000} s after the fault: ${silent.join(', ')}`)
    await load.end()
    const backAfter = record.badUntil(mended)
    if (backAfter > backWithinMs / 1_000) record.broke(`refusals until ${backAfter.toFixed(1)} s after the fault`)
    const troubles = fleet.instances.flatMap((instance) =>
      instance.troubles(12).map((line) => `${instance.name}: ${line}`),
    )
    await plant?.after?.(fleet, load)
    await checkAfter(fleet, load, listeners, before, record)
    for (const [index, instance] of fleet.instances.entries()) {
      const crashes = instance.crashes() - (crashesBefore[index] ?? 0)
      if (crashes > 0 && !fault.mayEnd?.includes(instance.name))
        record.broke(`${instance.name} ended by itself ${crashes} times`)
    }
    return {
      name,
      counts: record.counts(),
      asked: record.asked,
      refusals: record.refusals(),
      backAfter,
      remark,
      broken: record.broken(),
      troubles,
    }
  } finally {
    await Promise.all(listeners.map((listener) => listener.close()))
  }
}

/** Waits until no request was refused for a while: instances that have just started may be slow. */
async function steady(record: Record, calm: number): Promise<boolean> {
  let seen = -1
  let since = performance.now()
  const isSteady = () => {
    const { refused, gone } = record.counts()
    if (refused + gone !== seen) [seen, since] = [refused + gone, performance.now()]
    return performance.now() - since >= calm
  }
  await settled(isSteady, backWithinMs)
  return isSteady()
}

/** Starts the instances with what the fault wants; they keep running when they have it already. */
async function dress(fleet: Fleet, { wishes }: Fault, { nodeFlags = [] }: Plant = {}): Promise<void> {
  const wanted = wishes?.(fleet) ?? {}
  await Promise.all(
    fleet.instances.map(async (instance) => {
      const own = wanted[instance.name] ?? {}
      const wish = nodeFlags.length > 0 ? { ...own, nodeFlags: [...(own.nodeFlags ?? []), ...nodeFlags] } : own
      const isSame = JSON.stringify(fleet.wishes.get(instance.name) ?? {}) === JSON.stringify(wish)
      if (isSame && instance.pid() !== 0) return
      fleet.wishes.set(instance.name, wish)
      await instance.stop()
      await instance.start()
    }),
  )
}

/** Lists and registrations need the index near the head. */
async function indexed({ database, chain }: Fleet): Promise<void> {
  for (const until = performance.now() + 30_000; performance.now() < until; await delay(100)) {
    const [row] = await database.query<{ number: bigint }>('select number from index_cursor')
    if ((row?.number ?? 0n) + 3n >= BigInt((await chain.rpc('eth_blockNumber')) as string)) return
  }
  throw new Error('The index of the fleet does not reach the head.')
}

async function settled(holds: () => boolean, withinMs: number): Promise<void> {
  for (const until = performance.now() + withinMs; performance.now() < until && !holds();) await delay(100)
}

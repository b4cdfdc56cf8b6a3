/** The instance that writes the index is killed and stays away until the other has taken over. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Fault } from './faults.ts'
import type { Instance } from '../services/instance.ts'

/** A follower takes over within this time. */
const takeoverMs = 10_000

export const killLeader: Fault = {
  about: 'SIGKILL of the instance that writes the index; it stays away until the other has taken over',
  async strike({ instances, database, chain }, ms, record) {
    const leader = await leaderOf(instances)
    if (leader === undefined) {
      record.broke('no instance writes the index')
      return
    }
    const began = performance.now()
    await leader.kill({ restart: false })
    const killedAt = BigInt((await chain.rpc('eth_blockNumber')) as string)
    const others = instances.filter((instance) => instance !== leader)
    const isTakenOver = async () => {
      const [row] = await database.query<{ number: bigint }>('select number from index_cursor')
      return (row?.number ?? 0n) > killedAt && (await leaderOf(others)) !== undefined
    }
    while (!(await isTakenOver()) && performance.now() - began < 3 * takeoverMs) await delay(50)
    const took = performance.now() - began
    if (took > takeoverMs) record.broke(`no other process took the index over within ${takeoverMs / 1_000} s`)
    await delay(Math.max(0, ms - took))
    await leader.start()
    return `the other wrote the index after ${(took / 1_000).toFixed(1)} s`
  },
}

async function leaderOf(instances: readonly Instance[]): Promise<Instance | undefined> {
  const leads = await Promise.all(
    instances.map(async (instance) => {
      const text = await fetch(`${instance.urls().metrics}/metrics`).then(
        (response) => response.text(),
        () => '',
      )
      return /^touchstone_index_leader(?:\{[^}]*\})? 1$/m.test(text)
    }),
  )
  return instances.find((_, index) => leads[index])
}

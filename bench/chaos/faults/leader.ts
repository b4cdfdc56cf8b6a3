/** The instance that writes the index is killed and stays away until the other has taken over. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Fault } from './fault.ts'
import { hiddenLogs } from '../../../service/test/support/fault-rpc.ts'
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

/** The leader finds out, and has repaired the index, within this time. */
const repairMs = 60_000

export const logsEmpty: Fault = {
  about:
    'both providers answer eth_getLogs with an empty list, which no header contradicts; the leader must notice, and read the blocks again afterwards',
  wishes: ({ instances }) =>
    Object.fromEntries(instances.map(({ name }) => [name, { env: { INDEX_CHECK_SECONDS: '1', CHAIN_CACHE: 'head' } }])),
  async strike({ instances, chain }, ms, record) {
    const differs = async () => (await metricOf(instances, 'touchstone_index_differences')).some((value) => value > 0)
    const holdsWithin = async (holds: () => Promise<boolean>) => {
      for (const end = performance.now() + repairMs; performance.now() < end; await delay(200))
        if (await holds()) return true
      return false
    }
    for (const provider of chain.providers) provider.set(hiddenLogs)
    await delay(ms)
    if (!(await holdsWithin(differs))) record.broke('no instance noticed that the logs were hidden')
    for (const provider of chain.providers) provider.set('none')
    if (!(await holdsWithin(async () => !(await differs())))) record.broke('the index was not repaired')
    const repairs = await metricOf(instances, 'touchstone_index_repairs_total')
    return `${Math.max(0, ...repairs)} repairs`
  },
}

async function metricOf(instances: readonly Instance[], name: string): Promise<number[]> {
  const texts = await Promise.all(instances.map(metricsOf))
  return texts.flatMap((text) =>
    [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)$`, 'gm'))].map(([, n]) => Number(n)),
  )
}

function metricsOf(instance: Instance): Promise<string> {
  return fetch(`${instance.urls().metrics}/metrics`).then(
    (response) => response.text(),
    () => '',
  )
}

async function leaderOf(instances: readonly Instance[]): Promise<Instance | undefined> {
  const leads = await Promise.all(
    instances.map(async (instance) => /^touchstone_index_leader(?:\{[^}]*\})? 1$/m.test(await metricsOf(instance))),
  )
  return instances.find((_, index) => leads[index])
}

/**
 * Measures a forged tap by the number of batches, as processor time of interleaved rounds. It does so in a flood, where the budget of
 * searches is spent, with and without the hint of a batch; then a genuine tap with its hint, and one search without a budget.
 */
import { randomBytes } from 'node:crypto'
import { batchHint, createKeyRing, embeddedBatch, type BatchRecord } from '../../service/src/tap/keys/batch.ts'
import type { Derivation } from '../../service/src/tap/keys/derivations.ts'
import { createAuthenticate, type Authenticate } from '../../service/src/tap/sun/authenticate.ts'
import { createSearchBudget } from '../../service/src/tap/sun/search-budget.ts'
import { median } from '../lib/processes.ts'
import { batchNamed, cpuSeconds, tapsOf, type Tap } from './crypto.ts'

const counts = [1, 100, 1_000, 4_000] as const
const rounds = 7
const tapsPerRound = 3_000

type Ring = Awaited<ReturnType<typeof ringOf>>
type Row = readonly [name: string, taps: number, work: (ring: Ring) => Promise<unknown>]

/** Prints one line a kind of tap: microseconds with one batch, and the ratios of more. Throws when a genuine tap fails. */
export async function benchForgedTaps(): Promise<void> {
  console.log(`forged taps, 1 batch and the ratios of ${counts.slice(1).join(', ')} (processor time, interleaved)`)
  for (const scheme of ['an10922', 'sdm-backend-legacy'] as const) {
    const rings = await Promise.all(counts.map((count) => ringOf(count, scheme)))
    const rows: Row[] = [
      ['forged, no hint', tapsPerRound, ({ flooded }) => forged(flooded)],
      ['forged, a hint of ours', tapsPerRound, ({ flooded, hint }) => forged(flooded, hint)],
      ['genuine, with its hint', tapsPerRound, ({ flooded, hint, taps }) => genuine(flooded, hint, taps)],
      ['one search, no budget', 50, ({ searching }) => forged(searching)],
    ]
    for (const row of rows) await printRow(scheme, rings, row)
  }
}

async function printRow(scheme: Derivation, rings: readonly Ring[], [name, taps, work]: Row): Promise<void> {
  const costs = rings.map((): number[] => [])
  for (let round = -1; round < rounds; round++)
    for (const [index, ring] of rings.entries()) {
      const began = process.cpuUsage()
      for (let count = 0; count < taps; count++) await work(ring)
      if (round >= 0) costs[index]?.push((cpuSeconds(began) / taps) * 1e6)
    }
  const [first = []] = costs
  const ratios = costs.slice(1).map((all) => median(all.map((cost, round) => cost / (first[round] ?? Number.NaN))))
  const shown = ratios.map((ratio) => `×${ratio.toFixed(1)}`.padStart(7)).join('')
  console.log(`  ${scheme.padEnd(19)} ${name.padEnd(23)} ${median(first).toFixed(1).padStart(7)} µs ${shown}`)
}

async function ringOf(count: number, derivation: Derivation) {
  const records = Array.from({ length: count }, (_batch, index): BatchRecord => ({
    ...batchNamed(`batch-${index}`),
    derivation,
  }))
  const keys = createKeyRing(await Promise.all(records.map((record) => embeddedBatch(record))))
  const flooded = createAuthenticate({ keys, budget: createSearchBudget() })
  const last = records.at(-1) ?? batchNamed('none')
  await exhaust(flooded, count)
  // Hits are not counted, so that the last batch stays in its place.
  const searching = createAuthenticate({ keys: { ...keys, hit: () => {} } })
  return { flooded, searching, hint: batchHint(last.id), taps: await tapsOf(last, 100) }
}

/** Sends forged taps until the budget is spent, or no search is needed. */
async function exhaust(authenticate: Authenticate, count: number): Promise<void> {
  for (let tries = 0; tries < 2_000; tries++) {
    const found = await authenticate(randomBytes(16), randomBytes(8))
    if (count > 100 && !found.genuine && found.reason === 'not_searched') return
  }
}

function forged(authenticate: Authenticate, hint?: string): Promise<unknown> {
  return authenticate(randomBytes(16), randomBytes(8), { hint })
}

let turn = 0
async function genuine(authenticate: Authenticate, hint: string, taps: readonly Tap[]): Promise<void> {
  const { picc, cmac } = taps[turn++ % taps.length] ?? { picc: new Uint8Array(16), cmac: new Uint8Array(8) }
  const found = await authenticate(picc, cmac, { hint })
  if (!found.genuine) throw new Error(`A genuine tap was refused: ${found.reason}.`)
}

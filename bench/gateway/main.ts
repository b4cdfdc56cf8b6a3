/**
 * `npm run bench:gateway`: what selling costs (spec §2.6, §4.8). Unpaid: POST /verify beside a bare server that writes the same 402, as a
 * ratio of interleaved rounds. Paid: payments a second and each step of them, in process, with and without waiting for blocks.
 * `--payments N` of each crowd, default 400; `--seconds S`, the longest time for each crowd, default 16; an unpaid round takes an eighth.
 */
import { parseArgs } from 'node:util'
import { bounded } from '../lib/bounded.ts'
import { warnWhenBusy } from '../lib/cost.ts'
import { benchPaid, lanes } from './paid.ts'
import { benchUnpaid } from './unpaid.ts'
import { openGatewayWorld } from './world.ts'

const { values: options } = parseArgs({
  options: { payments: { type: 'string', default: '400' }, seconds: { type: 'string', default: '16' } },
})
const limits = { payments: wholeOf('payments', options.payments), seconds: wholeOf('seconds', options.seconds) }

await bounded(240_000, async (made) => {
  await warnWhenBusy()
  const world = await openGatewayWorld(made, { tokens: 100, payers: lanes })
  console.log(`ledger: ${world.databaseUrl === null ? 'PGlite in memory, no PostgreSQL answers' : 'PostgreSQL'}`)
  await benchUnpaid(world, limits.seconds / 8)
  await benchPaid(made, world, limits)
})

function wholeOf(name: string, text: string): number {
  const value = Number(text)
  if (/^\d{1,6}$/.test(text) && value > 0) return value
  console.error(`--${name} must be a whole number above 0`)
  return process.exit(1)
}

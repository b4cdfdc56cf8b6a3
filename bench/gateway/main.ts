/**
 * `npm run bench:gateway`: what selling costs (spec §2.6, §4.8). Unpaid: POST /verify beside a bare server that writes the same 402, as a
 * ratio of interleaved rounds. Paid: proofs a second beside the build before payments were settled together.
 * `--kills N`: instead, two gateways under load of which one is killed N times; payments, proofs and transfers must agree afterwards.
 * `--seconds S` of the paid load, default 60; `--clients N` that buy at the same time, default 1200; `--block S` between blocks, default 2.
 */
import { readOptions } from '../../scripts/options.ts'
import { bounded } from '../lib/bounded.ts'
import { warnWhenBusy } from '../lib/cost.ts'
import { benchPaid } from './paid.ts'
import { storm } from './storm.ts'
import { benchUnpaid } from './unpaid.ts'
import { openGatewayWorld } from './world.ts'

const { values: options } = readOptions({
  options: {
    seconds: { type: 'string', default: '60' },
    clients: { type: 'string', default: '1200' },
    block: { type: 'string', default: '2' },
    kills: { type: 'string' },
  },
})
const paid = {
  seconds: wholeOf('seconds', options.seconds),
  clients: wholeOf('clients', options.clients),
  blockSeconds: wholeOf('block', options.block),
}

const kills = options.kills === undefined ? 0 : wholeOf('kills', options.kills)

await bounded(900_000 + 2_000 * paid.seconds + 6_000 * kills, async (made) => {
  await warnWhenBusy()
  const world = await openGatewayWorld(made, { tokens: 100, payers: 200 })
  if (kills > 0) return storm(made, world, { ...paid, kills })
  await benchUnpaid(world, 2)
  await benchPaid(made, world, paid)
})

function wholeOf(name: string, text: string): number {
  const value = Number(text)
  if (/^\d{1,6}$/.test(text) && value > 0) return value
  console.error(`--${name} must be a whole number above 0`)
  return process.exit(1)
}

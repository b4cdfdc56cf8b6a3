/**
 * `npm run bench:tap` measures the check of a tap (spec §4.4), as ratios of interleaved rounds. They are the cryptography in process beside
 * the same steps built plainly on `node:crypto`, forged taps by the number of batches, then over HTTP beside a bare server, then with the
 * ledger on PostgreSQL.
 */
import { benchTapCrypto, newTaps } from './crypto.ts'
import { benchForgedTaps } from './forged.ts'
import { benchTapHttp } from './http.ts'
import { readOptions } from '../../scripts/options.ts'

readOptions({})

await benchTapCrypto()
await benchForgedTaps()
const { batch, taps } = await newTaps(420_000) // 60,000 for each of seven rounds of two seconds
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
await benchTapHttp(
  batch,
  taps.map(({ picc, cmac }) => `/api/verify?picc=${hex(picc)}&cmac=${hex(cmac)}`),
)

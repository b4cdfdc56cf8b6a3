/**
 * `node bench/tap.ts`: what checking a tap costs (spec §4.4), as ratios of interleaved rounds.
 * In process: the cryptography alone, beside the same steps built plainly on `node:crypto`.
 */
import { benchTapCrypto } from './tap-crypto.ts'

await benchTapCrypto()

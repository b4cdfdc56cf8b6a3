/** Records for property tests: every state, any flags, and owners that are sometimes the zero address. */
import fc from 'fast-check'
import type { Hex } from '../src/lib/hex.ts'
import { zeroAddress } from '../src/rules/address.ts'
import type { AssetRecord } from '../src/rules/record.ts'

const owner = fc.oneof(
  fc.bigInt({ min: 1n, max: 2n ** 160n - 1n }).map((address): Hex => `0x${address.toString(16).padStart(40, '0')}`),
  fc.constant(zeroAddress),
)

/** Any record with a state from 1 to 6. */
export const anyRecord: fc.Arbitrary<AssetRecord> = fc.record(
  {
    owner,
    timestamp: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    state: fc.constantFrom(1, 2, 3, 4, 5, 6),
    flags: fc.integer({ min: 0, max: 255 }),
    reserved: fc.integer({ min: 0, max: 65535 }),
  },
  { noNullPrototype: true },
)

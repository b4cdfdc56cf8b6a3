import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ChainRef, type Untrusted, untrustedOf, type Verdict, verdictOf } from '@touchstone/verdict'
import type { z } from 'zod'
import { chainRefSchema, untrustedSchema, verdictSchema } from './schemas.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type Flat<T> = T extends object ? { [Key in keyof T]: Flat<T[Key]> } : T
const same = <A, B>(equal: Same<Flat<A>, Flat<B>>): boolean => equal

describe('the schema of a verdict', () => {
  it('has exactly the type of the client library (checked by the compiler)', () => {
    assert.ok(same<z.infer<typeof verdictSchema>, Verdict>(true))
    assert.ok(same<z.infer<typeof chainRefSchema>, ChainRef>(true))
    assert.ok(same<z.infer<typeof untrustedSchema>, Untrusted>(true))
    // A type that says more, or less, is not the same.
    assert.equal(same<z.infer<typeof verdictSchema>, Omit<Verdict, 'untrusted'>>(false), false)
  })

  it('accepts verdicts of the library, and rejects an additional key or a hash in capitals', () => {
    const verdict = verdictOf({
      record: { owner: `0x${'1'.repeat(40)}`, timestamp: 1n, state: 4, flags: 0, reserved: 0 },
      tokenId: 2n ** 256n - 1n,
      block: { number: 7n, hash: `0x${'ab'.repeat(32)}` },
      contract: `0x${'c'.repeat(40)}`,
      chainId: 84532,
      untrusted: untrustedOf({ name: 'Boot', image: 'ipfs://bafy/1.png', description: 'x'.repeat(5_000) }),
    })
    assert.deepEqual(verdictSchema.parse(verdict), verdict)
    assert.equal(verdictSchema.safeParse({ ...verdict, owner: '0x1' }).success, false)
    assert.equal(verdictSchema.safeParse({ ...verdict, owner_commitment: `0x${'AB'.repeat(32)}` }).success, false)
    assert.equal(verdictSchema.safeParse({ ...verdict, token_id: '042' }).success, false)
  })

  it('accepts its own examples', () => {
    for (const schema of [verdictSchema, chainRefSchema, untrustedSchema])
      for (const example of (schema.meta()?.['examples'] ?? []) as unknown[]) schema.parse(example)
  })
})

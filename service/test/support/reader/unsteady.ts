/** A chain for tests whose answers overtake one another. Its node must not be read while it makes a block. */
import type { ChainSource } from '../../../src/chain/rpc/source.ts'

type Read<Args extends unknown[], Answer> = (...args: Args) => Promise<Answer>

/** Everything waits up to 3 ms before it is asked for, and again before it arrives. */
export function unsteady(source: ChainSource): ChainSource {
  const slow =
    <Args extends unknown[], Answer>(read: Read<Args, Answer>): Read<Args, Answer> =>
    async (...args) => {
      await delay()
      const answer = await read(...args)
      await delay()
      return answer
    }
  const { head, block, call, logs, proof } = source
  return { ...source, head: slow(head), block: slow(block), call: slow(call), logs: slow(logs), proof: slow(proof) }
}

function delay(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * 3))
}

/**
 * While anvil makes a block, a read that is pinned to the parent may be answered from the new state. That is a race inside the node (4 % of
 * such reads with anvil 1.7.1). Reads of state and the making of blocks therefore take turns.
 */
export function createTurns() {
  let reads = 0
  let making: Promise<void> | undefined
  let quiet = () => {}

  const inTurn =
    <Args extends unknown[], Answer>(read: Read<Args, Answer>): Read<Args, Answer> =>
    async (...args) => {
      while (making !== undefined) await making
      reads++
      try {
        return await read(...args)
      } finally {
        if (--reads === 0) quiet()
      }
    }

  return {
    inTurn,
    apart: <Source extends ChainSource>(source: Source): Source => ({
      ...source,
      call: inTurn(source.call),
      calls: inTurn(source.calls),
      proof: inTurn(source.proof),
    }),
    async alone(make: () => Promise<unknown>): Promise<void> {
      while (making !== undefined) await making
      const { promise, resolve } = Promise.withResolvers<void>()
      making = promise
      if (reads > 0) await new Promise<void>((done) => (quiet = done))
      try {
        await make()
      } finally {
        making = undefined
        resolve()
      }
    },
  }
}

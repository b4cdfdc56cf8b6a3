/** Steps of the index by hand, for tests that need no chain. */
import assert from 'node:assert/strict'
import type { Hex } from '@touchstone/verdict'
import type { Database } from '../../../src/db/database.ts'
import { type AssetEvent, eventKinds } from '../../../src/domain/registry-event.ts'
import { indexStore } from '../../../src/index/store.ts'
import { alice, hashOf, noMembers } from './rows.ts'

/** An event without its place on the chain. `block` is that of the step where left out. */
type StepEvent = Partial<AssetEvent> & Readonly<{ kind: number; tokenId: string; block?: number }>

/** Leads the index of a database. The steps go from block to block; `over` is the database of one step alone. */
export async function indexSteps(database: Database, options: Parameters<typeof indexStore>[1] = {}) {
  const led = await indexStore(database).lead(alice)
  assert.ok(led)
  let from = led.cursor
  return async function step(
    number: number,
    events: readonly StepEvent[],
    over: Pick<Database, 'query' | 'transaction' | 'dialect'> = database,
  ): Promise<void> {
    const to = { number: BigInt(number), hash: hashOf(number) as Hex, time: timeOf(number) }
    const placed = events.map(({ block = number, ...event }, logIndex) => ({
      ...noMembers,
      ...event,
      blockNumber: BigInt(block),
      logIndex,
      blockHash: hashOf(block) as Hex,
      transactionHash: hashOf(1_000_000 + block) as Hex,
      timestamp: timeOf(block),
    }))
    const blocks = new Map(
      [...placed, { blockNumber: to.number, blockHash: to.hash }].map((at) => [at.blockNumber, at]),
    )
    const isApplied = await indexStore(over, options).apply({
      epoch: led.epoch,
      from,
      rewindTo: null,
      events: placed,
      blocks: [...blocks.values()].map((at) => ({
        number: at.blockNumber,
        hash: at.blockHash,
        time: timeOf(Number(at.blockNumber)),
      })),
      to,
    })
    assert.ok(isApplied)
    from = to
  }
}

const timeOf = (block: number) => 1_800_000_000n + BigInt(block)

/** The events of a mint. */
export const minted = (tokenId: bigint, data: Hex = hashOf(0) as Hex): StepEvent[] => [
  { kind: eventKinds.AssetMinted, tokenId: String(tokenId), to: alice, data },
  { kind: eventKinds.StateChanged, tokenId: String(tokenId), fromState: 0, toState: 1 },
]

/** The events of a binding that leaves the product ACTIVATED. */
export const bound = (tokenId: bigint, data: Hex): StepEvent[] => [
  { kind: eventKinds.TagBound, tokenId: String(tokenId), data },
  { kind: eventKinds.StateChanged, tokenId: String(tokenId), fromState: 1, toState: 3 },
]

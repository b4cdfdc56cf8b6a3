/**
 * Joins the reads of many callers (spec §4.1): tokens asked for in one turn of the event loop go out as one call, pinned to
 * one block. While all lanes are busy the next batch fills, so the load on the chain does not follow the number of callers.
 */
import { ServiceError } from '../errors.ts'
import type { Found } from './read-calls.ts'
import type { ReadForm, Suspects } from './read-calls-form.ts'
import { blockGone } from './source.ts'
import type { Block, BlockGone } from './source.ts'

/** What was found, and the block it was read at. */
type BatchAnswer = Readonly<{ found: Found; block: Block }>

export type MicroBatch = Readonly<{
  /**
   * Reads one token at the head of the moment when its batch is sent. Joins a read of the same token that waits, or that is
   * under way at the block with hash `head`. Throws CHAIN_UNAVAILABLE; `deadline` is a moment of `performance.now()`.
   */
  ask: (tokenId: bigint, head: Block['hash'], deadline: number) => Promise<BatchAnswer | BlockGone>
  stats: () => Readonly<{ batches: number; batchedIds: number; splits: number }>
}>

export type MicroBatchOptions = Readonly<{
  maxBatch: number
  /** Batches under way at one time. */
  lanes: number
  /** The head and the form to read it in. */
  pin: (deadline: number) => Promise<Readonly<{ block: Block; form: ReadForm }> | BlockGone>
  /** A block that a batch was pinned to is not canonical any more. */
  onGone: (block: Block) => void
}>

/** Tokens that may wait, in batches. More than this means that the chain has stopped answering. */
const maxWaitingBatches = 64

type Flight = PromiseWithResolvers<BatchAnswer | BlockGone> & {
  tokenId: bigint
  deadline: number
  head?: Block['hash']
}

export function createMicroBatch({ maxBatch, lanes, pin, onGone }: MicroBatchOptions): MicroBatch {
  /** In the order of arrival. */
  const waiting = new Map<bigint, Flight>()
  const underWay = new Map<bigint, Flight>()
  const counts = { batches: 0, batchedIds: 0, splits: 0 }
  let busy = 0
  let scheduled = false

  function ask(tokenId: bigint, head: Block['hash'], deadline: number): Promise<BatchAnswer | BlockGone> {
    const sent = underWay.get(tokenId)
    const joined = waiting.get(tokenId) ?? (sent?.head === head ? sent : undefined)
    if (joined !== undefined) return joined.promise
    if (waiting.size >= maxWaitingBatches * maxBatch) return Promise.reject(unavailable('too many reads are waiting'))
    const flight: Flight = { ...Promise.withResolvers<BatchAnswer | BlockGone>(), tokenId, deadline }
    waiting.set(tokenId, flight)
    if (!scheduled && busy < lanes) {
      scheduled = true
      setImmediate(fillLanes)
    }
    return flight.promise
  }

  function fillLanes(): void {
    scheduled = false
    while (busy < lanes && waiting.size > 0) {
      busy++
      void send(nextBatch()).finally(() => {
        busy--
        fillLanes()
      })
    }
  }

  function nextBatch(): Flight[] {
    const flights: Flight[] = []
    for (const flight of waiting.values()) {
      if (flights.push(flight) === maxBatch) break
    }
    for (const flight of flights) waiting.delete(flight.tokenId)
    return flights
  }

  /** Never rejects: each flight has its own end. */
  async function send(flights: readonly Flight[]): Promise<void> {
    counts.batches++
    counts.batchedIds += flights.length
    // The first one has waited longest. The others are given up with it: the chain did not answer anybody.
    const deadline = flights[0]?.deadline ?? 0
    try {
      const pinned = await pin(deadline)
      if (pinned === blockGone) return settle(flights, () => blockGone)
      for (const flight of flights) {
        flight.head = pinned.block.hash
        underWay.set(flight.tokenId, flight)
      }
      for (const part of partsOf(flights, pinned.form.maxBatch)) {
        await readPart(part, pinned.block, pinned.form, deadline, true)
      }
    } catch (error) {
      for (const flight of flights) flight.reject(error)
    } finally {
      for (const flight of flights) if (underWay.get(flight.tokenId) === flight) underWay.delete(flight.tokenId)
    }
  }

  /** A part that fails is split once, so that one token whose answer cannot be right does not take all others with it. */
  async function readPart(
    flights: readonly Flight[],
    block: Block,
    form: ReadForm,
    deadline: number,
    maySplit: boolean,
  ): Promise<void> {
    const answer = await attempt(form.read(ids(flights), block, deadline))
    if (answer === blockGone) {
      onGone(block)
      return settle(flights, () => blockGone)
    }
    if ('found' in answer) return settle(flights, (index) => ({ found: answer.found[index] as Found, block }))
    const parts = maySplit && performance.now() < deadline ? splitOf(flights, answer.suspects) : []
    if (parts.length === 0) {
      for (const flight of flights) flight.reject(answer.error)
      return
    }
    counts.splits++
    await Promise.all(parts.map((part) => readPart(part, block, form, deadline, false)))
  }

  return { ask, stats: () => counts }
}

type Attempt = Readonly<{ found: readonly Found[] }> | (Suspects & Readonly<{ error: unknown }>) | BlockGone

async function attempt(read: ReturnType<ReadForm['read']>): Promise<Attempt> {
  try {
    const answer = await read
    if (answer === blockGone) return answer
    if (!('suspects' in answer)) return { found: answer }
    return { suspects: answer.suspects, error: unavailable('the answer for some tokens cannot be right') }
  } catch (error) {
    return { suspects: new Set(), error }
  }
}

function settle(flights: readonly Flight[], answerOf: (index: number) => BatchAnswer | BlockGone): void {
  for (const [index, flight] of flights.entries()) flight.resolve(answerOf(index))
}

/** Those whose answer cannot be right from the others; halves where nothing points at anyone. Nothing to split: none. */
function splitOf(flights: readonly Flight[], suspects: ReadonlySet<bigint>): readonly (readonly Flight[])[] {
  const isSuspect = (flight: Flight, index: number) =>
    suspects.size > 0 ? suspects.has(flight.tokenId) : index < flights.length / 2
  const parts = [flights.filter(isSuspect), flights.filter((flight, index) => !isSuspect(flight, index))]
  return parts.every((part) => part.length > 0) ? parts : []
}

function partsOf(flights: readonly Flight[], size: number): readonly (readonly Flight[])[] {
  const parts: (readonly Flight[])[] = []
  for (let at = 0; at < flights.length; at += size) parts.push(flights.slice(at, at + size))
  return parts
}

function ids(flights: readonly Flight[]): readonly bigint[] {
  return flights.map((flight) => flight.tokenId)
}

function unavailable(reason: string): ServiceError {
  return new ServiceError('CHAIN_UNAVAILABLE', 'The chain could not be read.', { cause: new Error(reason) })
}

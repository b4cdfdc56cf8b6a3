/**
 * Batches the reads of many callers (spec §4.1). Tokens asked for in one turn of the event loop go out as one call, pinned to one block.
 * While `concurrency` batches are under way the next one fills, so the load on the chain does not follow the callers.
 */
import { spanOfBatch } from '../../lib/async/batch.ts'
import { currentSpan, type Span, withSpan } from '../../lib/async/span.ts'
import { chainUnavailable } from '../../lib/errors.ts'
import type { Block } from '../rpc/block.ts'
import { nonCanonical, type NonCanonical } from '../rpc/source.ts'
import type { DecodedState } from './calls/abi.ts'
import type { CallEncoding } from './calls/encodings.ts'

type Answer = Readonly<{ decoded: DecodedState; block: Block }> | NonCanonical

export type MicroBatchOptions = Readonly<{
  maxBatch: number
  /** Batches under way at one time. */
  concurrency: number
  /** Returns the head and the encoding to read it in. */
  pin: (deadline: number) => Promise<Readonly<{ block: Block; encoding: CallEncoding }> | NonCanonical>
  /** Called when the block that a batch was pinned to is no longer canonical. */
  onNonCanonical: (block: Block) => void
}>

/** Batches that may wait. More than this means that the chain has stopped answering. */
const maxWaitingBatches = 64

type Request = PromiseWithResolvers<Answer> & {
  readonly tokenId: bigint
  readonly deadline: number
  readonly span: Span | undefined
  head?: Block['hash']
}

export function createMicroBatch({ maxBatch, concurrency, pin, onNonCanonical }: MicroBatchOptions) {
  /** In the order of arrival. */
  const waiting = new Map<bigint, Request>()
  const inFlight = new Map<bigint, Request>()
  const counts = { batches: 0, batchedIds: 0, splits: 0 }
  let running = 0
  let scheduled = false

  /**
   * Reads one token at the head of the moment when its batch is sent. Joins a read of the same token that waits, or that is
   * in flight at the block with hash `head`. Throws CHAIN_UNAVAILABLE; `deadline` is a moment of `performance.now()`.
   */
  function ask(tokenId: bigint, head: Block['hash'], deadline: number): Promise<Answer> {
    const sent = inFlight.get(tokenId)
    const joined = waiting.get(tokenId) ?? (sent?.head === head ? sent : undefined)
    if (joined !== undefined) {
      if (joined.span !== undefined) currentSpan()?.link(joined.span)
      return joined.promise
    }
    if (waiting.size >= maxWaitingBatches * maxBatch)
      return Promise.reject(chainUnavailable('too many reads are waiting'))
    const request: Request = { ...Promise.withResolvers<Answer>(), tokenId, deadline, span: currentSpan() }
    waiting.set(tokenId, request)
    if (!scheduled && running < concurrency) {
      scheduled = true
      setImmediate(startBatches)
    }
    return request.promise
  }

  function startBatches(): void {
    scheduled = false
    while (running < concurrency && waiting.size > 0) {
      running++
      const batch = takeBatch()
      void withSpan(spanOfBatch(batch.map(({ span }) => span)), () => send(batch)).finally(() => {
        running--
        startBatches()
      })
    }
  }

  function takeBatch(): Request[] {
    const requests: Request[] = []
    for (const request of waiting.values()) if (requests.push(request) === maxBatch) break
    for (const { tokenId } of requests) waiting.delete(tokenId)
    return requests
  }

  /** Never rejects: each request is settled by itself. */
  async function send(requests: readonly Request[]): Promise<void> {
    counts.batches++
    counts.batchedIds += requests.length
    // The first one has waited longest. The others end with it, because the chain did not answer any of them.
    const deadline = requests[0]?.deadline ?? 0
    try {
      const pinned = await pin(deadline)
      if (pinned === nonCanonical) return settle(requests, () => nonCanonical)
      const { block, encoding } = pinned
      for (const request of requests) {
        request.head = block.hash
        inFlight.set(request.tokenId, request)
      }
      for (let at = 0; at < requests.length; at += encoding.maxBatch)
        await readPart(requests.slice(at, at + encoding.maxBatch), { ...pinned, deadline, maySplit: true })
    } catch (error) {
      for (const request of requests) request.reject(error)
    } finally {
      for (const request of requests) if (inFlight.get(request.tokenId) === request) inFlight.delete(request.tokenId)
    }
  }

  /** Splits a part that fails once, so that one token whose answer is impossible does not fail all others. */
  async function readPart(
    requests: readonly Request[],
    options: Readonly<{ block: Block; encoding: CallEncoding; deadline: number; maySplit: boolean }>,
  ): Promise<void> {
    const { block, encoding, deadline, maySplit } = options
    const ids = requests.map(({ tokenId }) => tokenId)
    const answer = await encoding
      .read(ids, block, deadline)
      .catch((error: unknown) => ({ suspects: noSuspects, error }))
    if (answer === nonCanonical) {
      onNonCanonical(block)
      return settle(requests, () => nonCanonical)
    }
    if (!('suspects' in answer)) return settle(requests, (index) => ({ decoded: answer[index] as DecodedState, block }))
    const parts = maySplit && performance.now() < deadline ? split(requests, answer.suspects) : []
    if (parts.length === 0) {
      const error = 'error' in answer ? answer.error : chainUnavailable('the answer for some tokens cannot be right')
      for (const request of requests) request.reject(error)
      return
    }
    counts.splits++
    await Promise.all(parts.map((part) => readPart(part, { ...options, maySplit: false })))
  }

  return { ask, stats: () => counts }
}

const noSuspects: ReadonlySet<bigint> = new Set()

function settle(requests: readonly Request[], answerAt: (index: number) => Answer): void {
  for (const [index, request] of requests.entries()) request.resolve(answerAt(index))
}

/** Splits the suspects from the others, or in halves where there are none. Returns no parts when nothing can be split. */
function split(requests: readonly Request[], suspects: ReadonlySet<bigint>): readonly (readonly Request[])[] {
  const isFirst = ({ tokenId }: Request, index: number) =>
    suspects.size > 0 ? suspects.has(tokenId) : index < requests.length / 2
  const parts = [requests.filter(isFirst), requests.filter((request, index) => !isFirst(request, index))]
  return parts.every((part) => part.length > 0) ? parts : []
}

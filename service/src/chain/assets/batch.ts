/**
 * Batches the reads of many callers (spec §4.1). Keys asked for in one turn of the event loop go out as one call, pinned to one block. A key
 * is a token, or the commitments of a tag. While `concurrency` batches are under way the next one fills, so the load on the chain does not follow the callers.
 */
import { spanOfBatch } from '../../lib/async/batch.ts'
import { currentSpan, type Span, withSpan } from '../../lib/async/span.ts'
import { chainUnavailable } from '../../lib/errors.ts'
import type { Block } from '../rpc/block.ts'
import { nonCanonical, type NonCanonical } from '../rpc/answer.ts'
import type { CallEncoding, Suspects } from './calls/encodings.ts'

type Answer<State> = Readonly<{ state: State; block: Block }> | NonCanonical

export type MicroBatchOptions<Key, State> = Readonly<{
  /** Reads keys in an encoding, and returns their states in the same order. */
  read: (
    encoding: CallEncoding,
    keys: readonly Key[],
    block: Block,
    deadline: number,
  ) => Promise<readonly State[] | Suspects<Key> | NonCanonical>
  /** Keys in one batch. One call has fewer where the encoding takes fewer. */
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

type Request<Key, State> = PromiseWithResolvers<Answer<State>> & {
  readonly key: Key
  readonly deadline: number
  readonly span: Span | undefined
  head?: Block['hash']
}

export function createMicroBatch<Key, State>(options: MicroBatchOptions<Key, State>) {
  const { read, maxBatch, concurrency, pin, onNonCanonical } = options
  /** In the order of arrival. */
  const waiting = new Map<Key, Request<Key, State>>()
  const inFlight = new Map<Key, Request<Key, State>>()
  const counts = { batches: 0, batchedIds: 0 }
  let running = 0
  let scheduled = false

  /**
   * Reads one key at the head of the moment when its batch is sent. Joins a read of the same key that waits, or that is
   * in flight at the block with hash `head`. Throws CHAIN_UNAVAILABLE; `deadline` is a moment of `performance.now()`.
   */
  function ask(key: Key, head: Block['hash'] | undefined, deadline: number): Promise<Answer<State>> {
    const sent = inFlight.get(key)
    const joined = waiting.get(key) ?? (sent !== undefined && sent.head === head ? sent : undefined)
    if (joined !== undefined) {
      if (joined.span !== undefined) currentSpan()?.link(joined.span)
      return joined.promise
    }
    if (waiting.size >= maxWaitingBatches * maxBatch)
      return Promise.reject(chainUnavailable('too many reads are waiting'))
    const request: Request<Key, State> = {
      ...Promise.withResolvers<Answer<State>>(),
      key,
      deadline,
      span: currentSpan(),
    }
    waiting.set(key, request)
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

  function takeBatch(): Request<Key, State>[] {
    const requests: Request<Key, State>[] = []
    for (const request of waiting.values()) if (requests.push(request) === maxBatch) break
    for (const { key } of requests) waiting.delete(key)
    return requests
  }

  /** Never rejects: each request is settled by itself. */
  async function send(requests: readonly Request<Key, State>[]): Promise<void> {
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
        inFlight.set(request.key, request)
      }
      for (let at = 0; at < requests.length; at += encoding.maxBatch)
        await readPart(requests.slice(at, at + encoding.maxBatch), { ...pinned, deadline, maySplit: true })
    } catch (error) {
      for (const request of requests) request.reject(error)
    } finally {
      for (const request of requests) if (inFlight.get(request.key) === request) inFlight.delete(request.key)
    }
  }

  /** Splits a part that fails once, so that one key whose answer is impossible does not fail all others. */
  async function readPart(
    requests: readonly Request<Key, State>[],
    at: Readonly<{ block: Block; encoding: CallEncoding; deadline: number; maySplit: boolean }>,
  ): Promise<void> {
    const { block, encoding, deadline, maySplit } = at
    const keys = requests.map(({ key }) => key)
    const answer = await read(encoding, keys, block, deadline).catch((error: unknown) => ({
      suspects: new Set<Key>(),
      error,
    }))
    if (answer === nonCanonical) {
      onNonCanonical(block)
      return settle(requests, () => nonCanonical)
    }
    if (!('suspects' in answer)) return settle(requests, (index) => ({ state: answer[index] as State, block }))
    const parts = maySplit && performance.now() < deadline ? split(requests, answer.suspects) : []
    if (parts.length === 0) {
      const error = 'error' in answer ? answer.error : chainUnavailable('the answer for some items cannot be right')
      for (const request of requests) request.reject(error)
      return
    }
    await Promise.all(parts.map((part) => readPart(part, { ...at, maySplit: false })))
  }

  return { ask, stats: () => counts }
}

function settle<Key, State>(
  requests: readonly Request<Key, State>[],
  answerAt: (index: number) => Answer<State>,
): void {
  for (const [index, request] of requests.entries()) request.resolve(answerAt(index))
}

/** Splits the suspects from the others, or in halves where there are none. Returns no parts when nothing can be split. */
function split<Key, State>(
  requests: readonly Request<Key, State>[],
  suspects: ReadonlySet<Key>,
): readonly (readonly Request<Key, State>[])[] {
  const isFirst = ({ key }: Request<Key, State>, index: number) =>
    suspects.size > 0 ? suspects.has(key) : index < requests.length / 2
  const parts = [requests.filter(isFirst), requests.filter((request, index) => !isFirst(request, index))]
  return parts.every((part) => part.length > 0) ? parts : []
}

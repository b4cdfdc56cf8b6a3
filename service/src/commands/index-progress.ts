/** Brings the index to the head of the chain for a command: by waiting for the service that keeps it, else here, with visible progress. */
import type { CatchUp } from '../chain/indexer.ts'
import { patiently } from './patience.ts'
import { chainOf, CommandError, type Session } from './store-command.ts'

/** How long the service that leads is given, in milliseconds. */
const patienceMs = 2_000
/** Between two lines of progress, in milliseconds. */
const sayEveryMs = 2_000

/** The block of the head, to which the index then is complete. Throws one sentence when it cannot be brought there. */
export async function atTheHead(session: Session): Promise<bigint> {
  const { io } = session
  const { source, indexer } = chainOf(session)
  const head = await patiently(io, () => source.head())
  if (await indexer.until(head.number, patienceMs)) return head.number
  const { led, indexed } = await catchUp(session)
  if (indexed >= head.number) return head.number
  throw new CommandError(
    led
      ? `The index came to block ${indexed} only; the head is ${head.number}. Try again.`
      : `The index is at block ${indexed}, the head is ${head.number}: whoever leads it is not there yet. See: touchstone index status`,
  )
}

async function catchUp(session: Session): Promise<CatchUp> {
  const { io } = session
  const { indexer } = chainOf(session)
  let saidAt = performance.now()
  return indexer.catchUp((indexed, head) => {
    if (performance.now() - saidAt < sayEveryMs) return
    saidAt = performance.now()
    const percent = head === 0n ? 100 : Number((indexed * 1000n) / head) / 10
    io.err(`  index: block ${indexed} of ${head} (${percent} %)`)
  })
}

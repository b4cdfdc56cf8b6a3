/** Taps of software tags: each is presented until it has an answer. Some are kept back, to be presented when later ones have counted. */
import { setTimeout as delay } from 'node:timers/promises'
import type { FleetChain } from '../services/chain.ts'
import type { Clients, Wanted } from './clients.ts'
import type { FleetTag } from '../fleet.ts'

type AcceptedTap = { readonly uid: string; readonly counter: number; readonly path: string }
/** `stale` was never presented although a later tap of its tag counted: it must be refused for ever. */
export type Taps = {
  readonly accepted: readonly AcceptedTap[]
  readonly stale: ReadonlyMap<string, string>
  readonly unanswered: () => number
}

type Answer = {
  readonly verified: boolean
  readonly reason?: string
  readonly uid: string
  readonly tapCounter: number
  readonly asset: { readonly tokenId: string; readonly stateCode: number; readonly flagged: boolean }
  readonly chain: { readonly blockNumber: number; readonly blockHash: `0x${string}` }
}

const keepBackEach = 6
const againMs = 300
const giveUpMs = 60_000

/** One tap of each tag after another, `pauseMs` between them, until it is over. A tap that began is seen through. */
export function runTaps({
  clients,
  chain,
  tags,
  pauseMs,
  over,
}: {
  readonly clients: Clients
  readonly chain: Pick<FleetChain, 'truth'>
  readonly tags: readonly FleetTag[]
  readonly pauseMs: number
  readonly over: AbortSignal
}): Taps & { readonly ended: Promise<void> } {
  const accepted: AcceptedTap[] = []
  const stale = new Map<string, string>()
  let unanswered = 0

  async function tapAgainAndAgain(tag: FleetTag): Promise<void> {
    for (let count = 0; !over.aborted; count += 1) {
      const kept = count % keepBackEach === keepBackEach - 1 ? tag.next() : null
      const path = tag.next()
      unanswered += 1
      for (const until = performance.now() + giveUpMs; performance.now() < until; await delay(againMs)) {
        const { ok, reply } = await clients.ask(tapOf(tag, path, chain))
        if (!ok || reply === null) continue
        accepted.push({ uid: tag.uid, counter: (JSON.parse(reply.text) as Answer).tapCounter, path })
        unanswered -= 1
        if (kept !== null) stale.set(tag.uid, kept)
        break
      }
      await delay(pauseMs, undefined, { signal: over }).catch(() => {})
    }
  }

  return {
    accepted,
    stale,
    unanswered: () => unanswered,
    ended: Promise.all(tags.map(tapAgainAndAgain)).then(() => {}),
  }
}

function tapOf({ uid, tokenId }: FleetTag, path: string, chain: Pick<FleetChain, 'truth'>): Wanted {
  return {
    kind: 'tap',
    operation: 'verifyTap',
    host: 'verification',
    path,
    judge({ text }) {
      const answer = JSON.parse(text) as Answer
      if (!answer.verified) throw new Error(`a genuine tap of ${uid} is refused: ${answer.reason}`)
      const { asset, chain: at } = answer
      const truth = chain.truth(tokenId, { number: BigInt(at.blockNumber), hash: at.blockHash })
      const isRight =
        answer.uid === uid &&
        asset.tokenId === String(tokenId) &&
        truth?.state_code === asset.stateCode &&
        truth.flagged === asset.flagged
      if (!isRight) throw new Error(`a tap of ${uid} is not what the chain said at its block: ${text.slice(0, 400)}`)
      return 'ok'
    },
  }
}

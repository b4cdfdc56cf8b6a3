/**
 * Announcements of new blocks over the WebSocket of a provider (`eth_subscribe` newHeads). At each of them the indexer reads the head at
 * once instead of at its next poll. Nothing else in a message is used, and polls go on, so that a socket that is silent or lies neither
 * delays nor changes what is read.
 */
import { WebSocket } from 'ws'
import { sleep } from '../../lib/async/sleep.ts'
import { parseJsonObject } from '../../lib/json.ts'
import type { Log } from '../../lib/log.ts'

type AnnouncementOptions = Readonly<{
  /** WebSocket endpoints, asked in turn until one announces blocks. */
  urls: readonly string[]
  /** Called at most once in `gapMs`, whatever the provider sends. */
  onBlock: () => void
  log: Log
  gapMs?: number
  /** A socket that announces nothing for so long is given up. */
  silentMs?: number
  /** Pause after the first failure; it doubles with each further one, up to a minute. */
  retryMs?: number
}>

const longestRetryMs = 60_000
const connectMs = 10_000
const maxMessageBytes = 1_048_576
const subscription = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['newHeads'] })

/** Listens until it is closed. */
export function createBlockAnnouncements(options: AnnouncementOptions) {
  const { urls, onBlock, log, gapMs = 100, silentMs = 60_000, retryMs = 1_000 } = options
  const closing = new AbortController()
  const announce = atMostOnceIn(gapMs, onBlock)
  let isAnnounced: boolean | undefined

  function note(is: boolean): void {
    if (isAnnounced === is) return
    isAnnounced = is
    if (is) log.info('new blocks are announced by a provider')
    else log.warn('new blocks are not announced: the head is only polled')
  }

  async function run(): Promise<void> {
    for (let turn = 0, failures = 0; !closing.signal.aborted; turn += 1) {
      const wasHeard = await listen(urls[turn % urls.length] ?? '').catch(() => false)
      if (closing.signal.aborted) return
      failures = wasHeard ? 0 : failures + 1
      note(false)
      await sleep(Math.min(longestRetryMs, retryMs * 2 ** failures), { signal: closing.signal })
    }
  }

  /** Resolves when the socket is closed, with whether it has announced a block. Rejects for a URL that makes no socket. */
  async function listen(url: string): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const socket = new WebSocket(url, {
      handshakeTimeout: connectMs,
      maxPayload: maxMessageBytes,
      perMessageDeflate: false,
    })
    const end = () => socket.terminate()
    const silence = setTimeout(end, silentMs)
    let wasHeard = false
    socket.on('open', () => socket.send(subscription))
    socket.on('message', (data) => {
      if (parseJsonObject((data as Buffer).toString())?.['method'] !== 'eth_subscription') return
      silence.refresh()
      wasHeard = true
      note(true)
      announce()
    })
    socket.on('error', () => {}) // it closes then
    socket.once('close', () => {
      clearTimeout(silence)
      closing.signal.removeEventListener('abort', end)
      resolve(wasHeard)
    })
    closing.signal.addEventListener('abort', end)
    return promise
  }

  const running = urls.length === 0 ? Promise.resolve() : run()
  return {
    async close(): Promise<void> {
      closing.abort()
      announce.cancel()
      await running
    },
  }
}

/** Calls at once, and at the end of `gapMs` once more for all that came in between. */
function atMostOnceIn(gapMs: number, call: () => void) {
  let timer: NodeJS.Timeout | undefined
  let isWanted = false
  function run(): void {
    isWanted = false
    timer = setTimeout(() => {
      timer = undefined
      if (isWanted) run()
    }, gapMs)
    call()
  }
  const announce = () => {
    if (timer === undefined) run()
    else isWanted = true
  }
  announce.cancel = () => {
    clearTimeout(timer)
    isWanted = false
  }
  return announce
}

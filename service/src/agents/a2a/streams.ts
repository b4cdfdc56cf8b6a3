/** Streams of the A2A agent as server-sent events (WHATWG HTML §9.2), limited in number: of each client, and of all together. */
import type { TaskStream } from './agent.ts'

export type EventStreams = ReturnType<typeof createEventStreams>

const noListener: Parameters<TaskStream>[0] = { event: () => {}, end: () => {} }

/** Proxies close idle connections. */
const keepAliveMs = 15_000

export function createEventStreams({
  maxStreams = 1_000,
  maxPerClient = 50,
}: { readonly maxStreams?: number; readonly maxPerClient?: number } = {}) {
  const encoder = new TextEncoder()
  let opened = 0
  const openedBy = new Map<string, number>()

  function count(client: string, change: 1 | -1): void {
    opened += change
    const own = (openedBy.get(client) ?? 0) + change
    if (own === 0) openedBy.delete(client)
    else openedBy.set(client, own)
  }

  return {
    /** Returns the body of a response, or null if too many streams are open. `wrap` puts an event into the envelope of its binding. */
    open(client: string, stream: TaskStream, wrap: (event: object) => object): ReadableStream<Uint8Array> | null {
      if (opened >= maxStreams || (openedBy.get(client) ?? 0) >= maxPerClient) {
        // The message is worked on all the same, so that its task does not wait for ever.
        stream(noListener)()
        return null
      }
      count(client, 1)
      let close = () => {}
      return new ReadableStream<Uint8Array>({
        start(controller) {
          let isOpen = true
          let stop = () => {}
          const write = (text: string) => {
            if (isOpen) controller.enqueue(encoder.encode(text))
          }
          const alive = setInterval(write, keepAliveMs, ':\n\n').unref()
          close = () => {
            if (!isOpen) return
            isOpen = false
            count(client, -1)
            clearInterval(alive)
            stop()
          }
          const end = () => {
            if (!isOpen) return
            close()
            controller.close()
          }
          const stopStream = stream({ event: (event) => write(`data: ${JSON.stringify(wrap(event))}\n\n`), end })
          if (isOpen) stop = stopStream
          else stopStream()
        },
        cancel: () => close(),
      })
    },
  }
}

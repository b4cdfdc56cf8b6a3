/** Streams of the A2A agent as server-sent events (WHATWG HTML §9.2), so many at once. */
import type { TaskStream } from '../agents/a2a-agent.ts'

export type EventStreams = {
  /** The body of an answer; `form` puts an event into its binding's envelope. Null: too many are open. */
  readonly open: (stream: TaskStream, form: (event: object) => object) => ReadableStream<Uint8Array> | null
}

/** Proxies end connections on which nothing moves. */
const keepAliveMs = 15_000

export function createEventStreams({ maxStreams = 1_000 }: { readonly maxStreams?: number } = {}): EventStreams {
  const encoder = new TextEncoder()
  let opened = 0

  return {
    open(stream, form) {
      if (opened >= maxStreams) return null
      opened += 1
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
            opened -= 1
            clearInterval(alive)
            stop()
          }
          const end = () => {
            if (!isOpen) return
            close()
            controller.close()
          }
          const stopStream = stream({ event: (event) => write(`data: ${JSON.stringify(form(event))}\n\n`), end })
          if (isOpen) stop = stopStream
          else stopStream()
        },
        cancel: () => close(),
      })
    },
  }
}

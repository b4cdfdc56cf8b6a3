/**
 * The way of spans to the collector (OTLP over HTTP): batches, a bounded queue, one deadline over headers and body, no repetition.
 * A collector that does not answer costs the spans, which are counted.
 */
import { JsonTraceSerializer, ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer'
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter, type SpanProcessor } from '@opentelemetry/sdk-trace'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import type { TraceSettings } from '../config/trace-settings.ts'

type ExportOptions = Pick<TraceSettings, 'headers' | 'protocol' | 'timeoutMs' | 'queue' | 'delayMs'> & {
  readonly endpoint: string
  readonly log: Log
}

const formats = {
  'http/protobuf': { serializer: ProtobufTraceSerializer, type: 'application/x-protobuf' },
  'http/json': { serializer: JsonTraceSerializer, type: 'application/json' },
} as const

const mostOfBatch = 512

/** `abort` ends the requests under way, whose spans are then lost. */
export function createExport(options: ExportOptions) {
  const { endpoint, headers, protocol, timeoutMs, queue, delayMs, log } = options
  const { serializer, type } = formats[protocol]
  const counts = { exported: 0, failed: 0, dropped: 0 }
  const aborting = new AbortController()
  let waiting = 0
  let isReached = true

  async function send(body: Uint8Array): Promise<void> {
    const response = await fetch(`${endpoint}/v1/traces`, {
      method: 'POST',
      headers: { ...headers, 'Content-Type': type },
      body: Uint8Array.from(body),
      redirect: 'error',
      signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), aborting.signal]),
    })
    await response.body?.cancel() // it only lists what was rejected
    if (!response.ok) throw new Error(`the collector answered with status ${response.status}`)
  }

  /** Never rejects: lost spans are counted here. */
  async function exportAll(spans: readonly ReadableSpan[]): Promise<void> {
    waiting -= spans.length
    try {
      await send(serializer.serializeRequest([...spans]) ?? new Uint8Array())
      counts.exported += spans.length
      if (!isReached) log.info('traces are exported again')
      isReached = true
    } catch (error) {
      counts.failed += spans.length
      if (isReached) log.warn('traces not exported', { reason: reasonOf(error) })
      isReached = false
    }
  }

  const exporter: SpanExporter = {
    export: (spans, done) => void exportAll(spans).finally(() => done({ code: 0 })),
    shutdown: async () => {},
  }

  const batches = new BatchSpanProcessor({
    exporter,
    maxQueueSize: queue,
    maxExportBatchSize: Math.min(mostOfBatch, queue),
    scheduledDelayMillis: delayMs,
    exportTimeoutMillis: timeoutMs + 1_000, // the request ends before
  })
  const processor: SpanProcessor = {
    onStart: () => {},
    onEnd(span) {
      if (waiting >= queue) return void (counts.dropped += 1)
      waiting += 1
      batches.onEnd(span)
    },
    forceFlush: () => batches.forceFlush(),
    shutdown: () => batches.shutdown(),
  }
  return { processor, stats: () => ({ ...counts }), abort: () => aborting.abort() }
}

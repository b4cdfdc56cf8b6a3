/** A collector of traces (OTLP over HTTP, JSON or protobuf) that keeps the spans it gets, and the bytes of every request. */
import { EventEmitter, once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import { serve } from './http.ts'

export type SpanReceived = {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly name: string
  readonly kind: number
  readonly attributes: Readonly<Record<string, string | number | boolean>>
  readonly links: readonly { readonly traceId: string }[]
  readonly failed: boolean
  readonly startNs: bigint
  readonly endNs: bigint
}

export type Collector = Awaited<ReturnType<typeof startCollector>>

export async function startCollector() {
  const spans: SpanReceived[] = []
  const requests: { headers: IncomingHttpHeaders; path: string; body: Buffer }[] = []
  const resources: Record<string, unknown>[] = []
  const arrivals = new EventEmitter()
  let status = 200
  const { url, close } = await serve((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      requests.push({ headers: request.headers, path: request.url ?? '', body })
      if (status === 0) return // never answers
      if (status === 200) {
        const isJson = request.headers['content-type'] === 'application/json'
        for (const { resource, scopeSpans } of isJson ? jsonOf(body) : protobufOf(body)) {
          resources.push(attributesOf(resource.attributes))
          spans.push(...scopeSpans.flatMap((scope) => scope.spans.map(spanOf)))
        }
      }
      response.writeHead(status, { 'Content-Type': 'application/json' }).end('{}')
      arrivals.emit('arrival')
    })
  })
  return {
    url,
    close,
    spans,
    requests,
    resources,
    /** 0: requests are never answered. */
    answerWith: (next: number) => void (status = next),
    /** Returns the spans of the first trace whose spans satisfy `isWanted`, once they are here. */
    async trace(isWanted: (spans: readonly SpanReceived[]) => boolean): Promise<readonly SpanReceived[]> {
      for (;;) {
        const traces = Map.groupBy(spans, ({ traceId }) => traceId)
        for (const found of traces.values()) if (isWanted(found)) return found
        await once(arrivals, 'arrival', { signal: AbortSignal.timeout(60_000) })
      }
    },
  }
}

/** Attributes in a drawing, under shorter names. */
const shown = {
  'http.response.status_code': 'status',
  'touchstone.request_id': 'request_id',
  'touchstone.tap.outcome': 'outcome',
  'touchstone.provider': 'provider',
}

export function rootOf(spans: readonly SpanReceived[]): SpanReceived {
  const ids = new Set(spans.map(({ spanId }) => spanId))
  const [root, ...others] = spans.filter(({ parentSpanId }) => !ids.has(parentSpanId))
  if (root === undefined || others.length > 0) throw new Error(`${others.length + 1} roots`)
  return root
}

/** Draws a trace as a tree, in the order of the starts. */
export function treeOf(spans: readonly SpanReceived[], parent = '', indent = ''): string {
  const ids = new Set(spans.map(({ spanId }) => spanId))
  const isBelow = ({ parentSpanId }: SpanReceived) => (parent === '' ? !ids.has(parentSpanId) : parentSpanId === parent)
  return spans
    .filter(isBelow)
    .toSorted((a, b) => Number(a.startNs - b.startNs))
    .map((span) => {
      const ms = (Number(span.endNs - span.startNs) / 1e6).toFixed(1)
      const said = Object.entries(shown).flatMap(([name, as]) =>
        name in span.attributes ? [`${as}=${span.attributes[name]}`] : [],
      )
      const line = `${`${indent}${span.name}`.padEnd(44)} ${ms.padStart(6)} ms  ${said.join(' ')}`
      return `${line.trimEnd()}\n${treeOf(spans, span.spanId, `${indent}  `)}`
    })
    .join('')
}

type OtlpValue = { stringValue?: string; intValue?: number | string; boolValue?: boolean; doubleValue?: number }
type OtlpAttribute = { key: string; value: OtlpValue }
type OtlpSpan = {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  attributes: readonly OtlpAttribute[]
  links?: readonly { traceId: string }[]
  status?: { code?: number }
  startTimeUnixNano: string | bigint
  endTimeUnixNano: string | bigint
}
type ResourceSpans = {
  resource: { attributes: readonly OtlpAttribute[] }
  scopeSpans: readonly { spans: readonly OtlpSpan[] }[]
}

function jsonOf(body: Buffer): readonly ResourceSpans[] {
  return (JSON.parse(body.toString()) as { resourceSpans: readonly ResourceSpans[] }).resourceSpans
}

function attributesOf(attributes: readonly OtlpAttribute[]): Record<string, string | number | boolean> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue, boolValue, doubleValue } }) => [
      key,
      stringValue ?? boolValue ?? doubleValue ?? Number(intValue),
    ]),
  )
}

function spanOf(span: OtlpSpan): SpanReceived {
  return {
    ...span,
    parentSpanId: span.parentSpanId ?? '',
    attributes: attributesOf(span.attributes),
    links: span.links ?? [],
    failed: span.status?.code === 2,
    startNs: BigInt(span.startTimeUnixNano),
    endNs: BigInt(span.endTimeUnixNano),
  }
}

/** Decodes ExportTraceServiceRequest by the field numbers of opentelemetry-proto 1.x. */
function protobufOf(body: Buffer): readonly ResourceSpans[] {
  const attribute = (bytes: Buffer): OtlpAttribute => {
    const found = fieldsOf(bytes)
    const value = fieldsOf(found.bytes(2))
    const [text, flag, whole] = [value.all(1)[0], value.all(2)[0], value.all(3)[0]]
    return {
      key: found.bytes(1).toString(),
      value: {
        ...(text !== undefined && { stringValue: text.toString() }),
        ...(flag !== undefined && { boolValue: flag === 1n }),
        ...(whole !== undefined && { intValue: Number(whole) }),
      },
    }
  }
  const many = <T>(bytes: Buffer, field: number, of: (part: Buffer) => T) =>
    fieldsOf(bytes)
      .all(field)
      .map((part) => of(part as Buffer))
  const span = (bytes: Buffer): OtlpSpan => {
    const found = fieldsOf(bytes)
    return {
      traceId: found.bytes(1).toString('hex'),
      spanId: found.bytes(2).toString('hex'),
      parentSpanId: found.bytes(4).toString('hex'),
      name: found.bytes(5).toString(),
      kind: Number(found.all(6)[0]),
      startTimeUnixNano: found.all(7)[0] as bigint,
      endTimeUnixNano: found.all(8)[0] as bigint,
      attributes: many(bytes, 9, attribute),
      links: many(bytes, 13, (link) => ({ traceId: fieldsOf(link).bytes(1).toString('hex') })),
      status: { code: Number(fieldsOf(found.bytes(15)).all(3)[0] ?? 0n) },
    }
  }
  return many(body, 1, (resource) => ({
    resource: { attributes: many(fieldsOf(resource).bytes(1), 1, attribute) },
    scopeSpans: many(resource, 2, (scope) => ({ spans: many(scope, 2, span) })),
  }))
}

/** Splits a protobuf message into its fields. */
function fieldsOf(bytes: Buffer) {
  const fields = new Map<number, (Buffer | bigint)[]>()
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++] ?? 0
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  const readers: Readonly<Record<number, () => Buffer | bigint>> = {
    0: varint,
    1: () => bytes.readBigUInt64LE((at += 8) - 8),
    2: () => {
      const length = Number(varint())
      return bytes.subarray(at, (at += length))
    },
    5: () => BigInt(bytes.readUInt32LE((at += 4) - 4)),
  }
  while (at < bytes.length) {
    const tag = Number(varint())
    const value = readers[tag & 7]?.()
    if (value === undefined) throw new Error(`wire type ${tag & 7}`)
    fields.set(tag >> 3, [...(fields.get(tag >> 3) ?? []), value])
  }
  const all = (field: number) => fields.get(field) ?? []
  return { all, bytes: (field: number) => (all(field)[0] ?? Buffer.alloc(0)) as Buffer }
}

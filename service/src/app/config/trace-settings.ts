/** Settings of traces, under the names of the OpenTelemetry specification. */
import { z } from 'zod'
import { decodePercent } from '../../lib/bytes.ts'
import { choice, isHttpUrl, list, mapped, optional, type Parser, pattern, textThat, whole } from './parsers.ts'
import { secret, setting } from './setting.ts'

const samplers = [
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
  'always_on',
  'always_off',
  'traceidratio',
] as const

const collectorUrl = mapped(
  textThat('an http or https URL without user and query, such as http://127.0.0.1:4318', isPlainUrl),
  (text) => text.replace(/\/+$/, ''),
)

function isPlainUrl(text: string): boolean {
  if (!isHttpUrl(text)) return false
  const { username, password, search, hash } = new URL(text)
  return username + password + search + hash === ''
}

export const traceSettings = z.object({
  endpoint: setting('OTEL_EXPORTER_OTLP_ENDPOINT', optional(collectorUrl)).describe(
    'Collector that gets the traces by OTLP over HTTP, at /v1/traces below this URL; empty: nothing is traced.',
  ),
  headers: secret(
    'OTEL_EXPORTER_OTLP_HEADERS',
    pairs('headers such as authorization=Bearer%20abc', /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/),
  ).describe('Headers of each request to the collector, percent-encoded; needs https, or a collector on this machine.'),
  protocol: setting('OTEL_EXPORTER_OTLP_PROTOCOL', choice('http/protobuf', 'http/json')).describe(
    'Encoding of the traces; every collector takes both.',
  ),
  timeoutMs: setting('OTEL_EXPORTER_OTLP_TIMEOUT', whole(100, 60_000, 10_000)).describe(
    'Milliseconds that one request to the collector may take; then its spans are lost.',
  ),
  serviceName: setting(
    'OTEL_SERVICE_NAME',
    pattern(/^[^\p{C}]{1,100}$/u, '1 to 100 characters', 'touchstone'),
  ).describe('Name of this service in traces.'),
  resource: setting(
    'OTEL_RESOURCE_ATTRIBUTES',
    pairs('attributes such as deployment.environment.name=production', /^[\w./-]{1,100}$/),
  ).describe('Attributes of every trace of this process, percent-encoded.'),
  sampler: setting('OTEL_TRACES_SAMPLER', choice(...samplers)).describe(
    'Requests that are traced. parentbased: as the traceparent of a proxy of TRUSTED_PROXIES says, if there is one.',
  ),
  ratio: setting(
    'OTEL_TRACES_SAMPLER_ARG',
    mapped(pattern(/^(?:0(?:\.\d{1,9})?|1(?:\.0{1,9})?)$/, 'a number from 0 to 1', '1'), Number),
  ).describe('Share of the requests that traceidratio traces: 0.01 is one of a hundred.'),
  queue: setting('OTEL_BSP_MAX_QUEUE_SIZE', whole(1, 1_000_000, 2_048)).describe(
    'Spans that wait for their export; further ones are dropped and counted.',
  ),
  delayMs: setting('OTEL_BSP_SCHEDULE_DELAY', whole(10, 60_000, 5_000)).describe(
    'Milliseconds after which spans are exported at the latest.',
  ),
})

export type TraceSettings = z.infer<typeof traceSettings>

/** Accepts `name=value` pairs separated by commas, with values percent-encoded as in W3C Baggage. */
function pairs(want: string, name: RegExp): Parser<Readonly<Record<string, string>>> {
  const isPair = (text: string) => {
    const at = text.indexOf('=')
    return (
      at > 0 &&
      name.test(text.slice(0, at).trim()) &&
      /^[^\p{C}]{0,1000}$/u.test(decodePercent(text.slice(at + 1).trim()) ?? '\0')
    )
  }
  return mapped(list(want, isPair), (texts) =>
    Object.fromEntries(
      texts.map((text) => {
        const at = text.indexOf('=')
        return [text.slice(0, at).trim(), decodePercent(text.slice(at + 1).trim()) ?? '']
      }),
    ),
  )
}

/**
 * Requests made of the OpenAPI description. There are valid ones, and ones that are wrong in the ways in which clients and attackers are.
 */
import fc, { type Arbitrary } from 'fast-check'
import type { Operation, Parameter, Schema, Sent } from '../contract.ts'

/** Values of the running world by parameter name, and headers that let a request in. */
export type Known = {
  readonly values: Readonly<Record<string, readonly string[]>>
  readonly headers: readonly Readonly<Record<string, string>>[]
  readonly bodies: Readonly<Record<string, readonly string[]>>
}

/** Generates the requests of an operation. None names another route: no segment holds a slash. */
export function requestsFor(operation: Operation, known: Known): Arbitrary<Sent> {
  const { path, method, parameters, requestBody, operationId } = operation
  const of = (place: Parameter['in']) => parameters.filter((parameter) => parameter.in === place)
  const segments = fc.record(Object.fromEntries(of('path').map((one) => [one.name, segmentOf(one, known)])))
  const query = fc.tuple(...of('query').map((one) => pairsOf(one, known)), strayPairs)
  const headers = fc.tuple(
    ...of('header').map((one) => headerOf(one, known)),
    fc.constantFrom(...known.headers),
    common,
  )
  const body = requestBody === undefined ? fc.constant(undefined) : bodyOf(known.bodies[operationId] ?? ['{}'])
  return fc.tuple(segments, query, headers, body).map(([named, pairs, parts, text]) => {
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => named[name] ?? '')
    const asked = pairs.flat().join('&')
    return {
      method,
      target: asked === '' ? filled : `${filled}?${asked}`,
      headers: Object.assign({}, ...parts, text?.headers) as Record<string, string>,
      body: text?.text,
    }
  })
}

/** Generates an encoded path segment without a slash, which would lead to another route. */
function segmentOf({ name, schema }: Parameter, { values }: Known): Arbitrary<string> {
  return fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...(values[name] ?? ['1'])) },
    { weight: 2, arbitrary: validOf(schema).map(encodeURIComponent) },
    { weight: 2, arbitrary: fc.constantFrom(...wrongSegments) },
    { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 40 }).map((text) => encodeURIComponent(text)) },
  )
}

const wrongSegments = [
  '',
  encodeURIComponent('٤٢'),
  `${2n ** 256n}`,
  `${2n ** 256n - 1n}`,
  '9'.repeat(79),
  '9'.repeat(5_000),
  '%3Cscript%3Ealert(1)%3C%2Fscript%3E',
  "1'%20OR%20'1'='1",
].concat(
  '0 -1 +42 0x2a 4.2 1e3 %zz %00 42%0a %2e%2e %2F %25%32%46 4%32 42%20 %ff%fe %F3%A0%80%81 .. . *'.split(' '),
  '__proto__ constructor'.split(' '),
)

function pairsOf({ name, schema, required }: Parameter, { values }: Known): Arbitrary<string[]> {
  const pair = (value: string) => `${name}=${encodeURIComponent(value)}`
  const valid = fc.oneof(fc.constantFrom(...(values[name] ?? [''])), validOf(schema)).map((value) => [pair(value)])
  return fc.oneof(
    { weight: required ? 6 : 3, arbitrary: valid },
    { weight: required ? 1 : 4, arbitrary: fc.constant<string[]>([]) },
    { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 40 }).map((value) => [pair(value)]) },
    { weight: 1, arbitrary: valid.map(([first = '']) => [first, first]) },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom(`${name}=%zz`, name, `${name}=${'f'.repeat(5_000)}`, `${name}[]=1`)
        .map((wrong) => [wrong]),
    },
  )
}

const strayPairs = fc.constantFrom([], [], [], ['utm_source=x'], ['__proto__=1'], ['%zz'], ['&&='])

function headerOf({ name, schema }: Parameter, { values }: Known): Arbitrary<Record<string, string>> {
  const value = fc.oneof(fc.constantFrom(...(values[name] ?? [''])), validOf(schema), visible)
  return fc
    .option(value, { nil: undefined })
    .map((text): Record<string, string> => (text === undefined ? {} : { [name]: text }))
}

/** Bytes that may stand in a header. */
const visible = fc.stringMatching(/^[!-~]{0,60}$/)

const accepts =
  '*/* application/json application/problem+json text/html application/ld+json application/vc application/vc+jwt application/linkset+json text/csv application/graphql-response+json a/b;q=x ,'.split(
    ' ',
  )

const common = fc.record(
  {
    Accept: fc.constantFrom(...accepts),
    'Accept-Language': fc.constantFrom('de', 'ar;q=1', 'xx-yy', '*'),
    'X-Request-Id': fc.oneof(fc.stringMatching(/^[\w.-]{1,64}$/), visible),
    'Sec-Purpose': fc.constantFrom('prefetch', 'none'),
    Origin: fc.constant('https://elsewhere.example'),
  },
  { requiredKeys: [] },
)

function bodyOf(known: readonly string[]): Arbitrary<{ text: string; headers: Record<string, string> }> {
  const text = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...known) },
    { weight: 2, arbitrary: fc.json({ maxDepth: 3 }) },
    { weight: 1, arbitrary: fc.constantFrom(...known).map((whole) => whole.slice(0, whole.length / 2)) },
    { weight: 1, arbitrary: fc.constantFrom('', 'null', '[]', '"', '{"__proto__":{}}', '[['.repeat(2_000)) },
    {
      weight: 1,
      arbitrary: fc.integer({ min: 17, max: 80 }).map((size) => JSON.stringify({ x: 'x'.repeat(size * 1_024) })),
    },
  )
  const json = 'application/json'
  const type = fc.constantFrom(json, json, `${json}; charset=utf-8`, `${json}; charset=utf-16`, 'text/plain')
  return fc.tuple(text, type).map(([body, media]) => ({ text: body, headers: { 'Content-Type': media } }))
}

function validOf({ pattern, enum: values, maxLength = 100 }: Schema): Arbitrary<string> {
  if (values !== undefined) return fc.constantFrom(...values.map(String))
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern)).map((text) => text.slice(0, maxLength))
  return fc.string({ maxLength: Math.min(maxLength, 100) })
}

/** Bodies that the fuzzer begins with, by the operation that takes them: good ones, and some that are not. */
export const knownBodies = {
  runGraphql: [
    '{"query":"{ products(first: 2) { totalCount edges { node { id name } } } }"}',
    '{"query":"query ($id: ID!) { product(id: $id) { name transfers { id } } }","variables":{"id":"1"}}',
    '{"query":"{ nothing }"}',
    '{"query":"{ products(first: 9999) { totalCount } }"}',
  ],
  callMcp: [
    '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
    '{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"verify_asset","arguments":{"token_id":"1"}}}',
    '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"nothing","arguments":{}}}',
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    '{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}',
  ],
  callA2a: [
    '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"data":{"skill":"verify_asset","token_id":"1"}}]}}}',
    '{"jsonrpc":"2.0","id":2,"method":"GetTask","params":{"id":"none"}}',
    '{"jsonrpc":"2.0","id":3,"method":"Nothing"}',
  ],
  sendMessage: [
    '{"message":{"messageId":"m2","role":"ROLE_USER","parts":[{"text":"Is 1 flagged?"}]}}',
    '{"message":{"messageId":"m3","role":"ROLE_USER","parts":[]}}',
  ],
  buyAttestation: ['{}', '{"assetId":"1","chain":"base-sepolia"}', '{"assetId":"99"}', '{"assetId":"0x1"}'],
} as const satisfies Readonly<Record<string, readonly string[]>>

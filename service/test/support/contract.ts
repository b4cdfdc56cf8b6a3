/** Checks answers against the OpenAPI description: parts it does not describe, and leaks. */
import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { readOpenApi } from '../../src/discovery/openapi.ts'
import { memoize } from '../../src/lib/memoize.ts'
import { raw, type Reply } from './http.ts'

type Json = Readonly<Record<string, unknown>>
export type Schema = Json & {
  readonly pattern?: string
  readonly enum?: readonly unknown[]
  readonly maxLength?: number
}
export type Parameter = {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly schema: Schema
}
type Media = Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>
type Header = { readonly required?: boolean; readonly schema: Schema }
type Answer = { readonly headers: Readonly<Record<string, Header>>; readonly content?: Media }
export type Operation = {
  readonly operationId: string
  readonly method: string
  readonly path: string
  /** Origins of the hosts that answer it. */
  readonly servers: readonly string[]
  readonly parameters: readonly Parameter[]
  readonly requestBody?: { readonly content: Media }
  readonly security?: readonly Json[]
  readonly responses: Readonly<Record<string, Answer>>
}
/** These headers need no description. They are those of HTTP itself, and rules for caches, browsers and search engines. */
const common = new Set(
  'connection content-encoding content-length content-type date keep-alive transfer-encoding vary access-control-expose-headers x-content-type-options referrer-policy cross-origin-opener-policy x-robots-tag'.split(
    ' ',
  ),
)

export type Sent = { method: string; target: string; headers: Record<string, string>; body?: string | undefined }

export function readContract(text: string) {
  const document = JSON.parse(text) as {
    servers: { url: string }[]
    paths: Record<string, { servers?: { url: string }[] } & Record<string, Json>>
    components: { schemas: Json }
  }
  const resolve = (node: unknown): unknown => {
    if (typeof node !== 'object' || node === null) return node
    if (Array.isArray(node)) return node.map(resolve)
    const ref = (node as { $ref?: unknown }).$ref
    if (typeof ref === 'string' && !ref.startsWith('#/components/schemas/'))
      return resolve(
        ref
          .slice(2)
          .split('/')
          .reduce<unknown>((at, key) => (at as Json)[key], document),
      )
    return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, resolve(value)]))
  }
  const operations = Object.entries(document.paths).flatMap(([path, { servers = document.servers, ...methods }]) =>
    Object.entries(methods).map(([method, operation]) => {
      const resolved = resolve(operation) as Omit<Operation, 'parameters'> & Partial<Operation>
      const urls = servers.map(({ url }) => url)
      return { ...resolved, parameters: resolved.parameters ?? [], method: method.toUpperCase(), path, servers: urls }
    }),
  )
  const ajv = new Ajv2020({ strict: false, allErrors: false })
  addFormats.default(ajv)
  const inlined = (value: unknown) =>
    JSON.parse(JSON.stringify(value).replaceAll('#/components/schemas/', '#/$defs/')) as Json
  const $defs = inlined(document.components.schemas)
  const validatorOf = memoize((text: string) => ajv.compile({ ...inlined(JSON.parse(text)), $defs }), { max: 1_000 })
  const textOf = memoize((schema: Schema) => JSON.stringify(schema), { max: 1_000 })
  function problemOf(schema: Schema, value: unknown): string | null {
    const validate = validatorOf(textOf(schema))
    return validate(value) ? null : ajv.errorsText(validate.errors)
  }

  /** Everything about the answer that is not as the description says. */
  function faultsOf(operation: Operation, reply: Reply): string[] {
    const answer = operation.responses[String(reply.status)]
    if (answer === undefined) return [`status ${reply.status} is not documented: ${reply.text.slice(0, 200)}`]
    return [...headerFaults(answer, reply), ...bodyFaults(answer, reply, operation.method), ...leaksOf(reply)]
  }

  function headerFaults({ headers }: Answer, reply: Reply): string[] {
    const described = new Set(Object.keys(headers).map((name) => name.toLowerCase()))
    const others = Object.keys(reply.headers).filter((name) => !described.has(name) && !common.has(name))
    const undescribed = others.map((name) => `header ${name} is not described`)
    const wrong = Object.entries(headers).flatMap(([name, { required, schema }]) => {
      const found = reply.headers[name.toLowerCase()]
      if (found === undefined) return required === false ? [] : [`header ${name} is missing`]
      const text = String(found)
      const problem = problemOf(schema, schema['type'] === 'integer' ? Number(text) : text)
      return problem === null ? [] : [`header ${name}: ${problem}, found ${text}`]
    })
    return [...undescribed, ...wrong]
  }

  function bodyFaults({ content }: Answer, { headers, text }: Reply, method: string): string[] {
    const type = headers['content-type']
    if (content === undefined) return text === '' ? [] : [`a body where none is documented: ${text.slice(0, 100)}`]
    const plain = (media: string) => media.replaceAll(' ', '').toLowerCase()
    const media = Object.entries(content).find(([name]) => plain(name) === plain(String(type)))?.[1]
    if (media === undefined) return [`media type ${String(type)} is not documented`]
    if (method === 'HEAD') return []
    if (headers['x-content-type-options'] !== 'nosniff') return ['X-Content-Type-Options is missing']
    try {
      const isJson = /json|^application\/vc$/.test(String(type))
      const problem = problemOf(media.schema, isJson ? JSON.parse(text) : text)
      return problem === null ? [] : [`body: ${problem}, found ${text.slice(0, 300)}`]
    } catch {
      return [`body is no JSON: ${text.slice(0, 100)}`]
    }
  }

  /** Media types of an operation without an example, and examples that do not fit. */
  function exampleFaults({ operationId, requestBody, responses }: Operation): string[] {
    const places = [
      ['body', requestBody?.content],
      ...Object.entries(responses).map(([at, { content }]) => [at, content]),
    ]
    return (places as [string, Media | undefined][]).flatMap(([at, content = {}]) =>
      Object.entries(content).flatMap(([type, { schema, example }]) => {
        const name = /schemas\/(\w+)$/.exec(String(schema['$ref']))?.[1]
        const { examples = [] } = (name === undefined ? schema : document.components.schemas[name]) as {
          examples?: unknown[]
        }
        const given = example === undefined ? examples : [example]
        const problems = given.map((value) => problemOf(schema, value)).filter((problem) => problem !== null)
        const found = given.length === 0 ? ['has no example'] : problems
        return found.map((problem) => `${operationId} ${at} ${type}: ${problem}`)
      }),
    )
  }

  /** Returns the first example of a schema. */
  function exampleOf(schema: string): Json {
    const { examples = [] } = document.components.schemas[schema] as { readonly examples?: readonly Json[] }
    const [example] = examples
    if (example === undefined) throw new Error(`The schema ${schema} has no example.`)
    return example
  }

  return { operations, faultsOf, exampleFaults, exampleOf }
}

let described: ReturnType<typeof readContract> | undefined

/** Asserts that an answer is as the description has it, and returns its text. A limit that is off in a test sends no headers. */
export async function textAsDescribed(operationId: string, response: Response): Promise<string> {
  described ??= readContract(readOpenApi())
  const operation = described.operations.find((one) => one.operationId === operationId)
  assert.ok(operation, `no operation is called ${operationId}`)
  const text = await response.text()
  const faults = described.faultsOf(operation, {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    text,
  })
  assert.deepEqual(
    faults.filter((fault) => !/^header (?:X-)?Rate-?Limit\S* is missing$/.test(fault)),
    [],
  )
  return text
}

/** Finds stack traces, file names and driver messages. */
function leaksOf({ headers, text }: Reply): string[] {
  // The name of a file is tried at its first letter only. At each letter, 60 KB of hexadecimal digits take nine seconds.
  const leak =
    /\n\s+at \S+|node:internal|(?<![\w-])[\w-]+\.ts:\d+|node_modules\/|\b(?:Type|Range|Syntax|Reference)Error\b|ECONN\w+|postgres:\/\//
  const found = leak.exec(`${JSON.stringify(headers)}\n${text}`)
  return found === null ? [] : [`leaks "${found[0].trim()}"`]
}

const sharedAgent = new Agent({ keepAlive: true, maxSockets: 4 })
export const closeConnections = () => sharedAgent.destroy()

export const send = (origin: string, { target, ...sent }: Sent, agent = sharedAgent): Promise<Reply> =>
  raw(origin, target, { ...sent, agent })

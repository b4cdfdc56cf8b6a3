/**
 * The OpenAPI 3.1 description of all three hosts (spec §9), made of the tables of `openapi-*.ts` and their Zod schemas. Generated into
 * `service/openapi.json` by `scripts/openapi.ts`; the service serves that file with its own URLs.
 */
import { z } from 'zod'
import { agentOperations } from './openapi-agents.ts'
import { assetOperations } from './openapi-assets.ts'
import { discoveryOperations } from './openapi-discovery.ts'
import { otherHostsOperations } from './openapi-gateway.ts'
import { info, securitySchemes, serverOf, tags } from './openapi-info.ts'
import { headers, type Answer, type HeaderName, type Operation, type Parameter } from './openapi-operation.ts'
import { passportOperations } from './openapi-passports.ts'
import { chainRefSchema, generalErrorSchema, untrustedSchema } from './schemas/verdict.ts'

const described: readonly Operation[] = [
  ...assetOperations,
  ...passportOperations,
  ...otherHostsOperations,
  ...discoveryOperations,
  ...agentOperations,
]

type Json = Record<string, unknown>

/** Parts of bodies that have a name of their own. */
const parts = [chainRefSchema, untrustedSchema]

export function openApiDocument(operations = described): Json {
  const schemas = schemasOf(operations)
  const paths: Record<string, Json> = {}
  const shared = sharedAnswers(operations)
  for (const operation of operations) {
    const { path, method, hosts = ['verification'] } = operation
    const servers = hosts.join() === 'verification' ? {} : { servers: hosts.map(serverOf) }
    paths[path] = { ...servers, ...paths[path], [method]: operationOf(operation, shared) }
  }
  return {
    openapi: '3.1.0',
    info,
    servers: [serverOf('verification')],
    security: [],
    tags,
    paths,
    components: {
      schemas,
      headers: Object.fromEntries(promised(operations).map((name) => [name, headerOf(headers[name])])),
      responses: Object.fromEntries([...shared].map(([text, name]) => [name, JSON.parse(text) as Json])),
      securitySchemes,
    },
  }
}

/** The headers that some answer always has, in the order of their table. */
function promised(operations: readonly Operation[]): HeaderName[] {
  const used = new Set(operations.flatMap(({ answers }) => Object.values(answers).flatMap((one) => one.headers ?? [])))
  return (Object.keys(headers) as HeaderName[]).filter((name) => name === 'X-Request-Id' || used.has(name))
}

/** Answers that more than one operation gives, by their JSON: each is named for the first of them. */
function sharedAnswers(operations: readonly Operation[]): ReadonlyMap<string, string> {
  const uses = new Map<string, string[]>()
  for (const { id, answers } of operations) {
    for (const [status, answer] of Object.entries(answers)) {
      const text = JSON.stringify(answerOf(answer))
      uses.set(text, [...(uses.get(text) ?? []), `${id}${status}`])
    }
  }
  const shared = [...uses].flatMap(([text, [first = '', ...more]]) =>
    more.length === 0 ? [] : [[text, first] as const],
  )
  return new Map([...shared, [JSON.stringify(answerOf(tooLarge)), 'tooLarge']])
}

function operationOf(operation: Operation, shared: ReadonlyMap<string, string>): Json {
  const { id, tag, summary, description, parameters, body, security } = operation
  const answers = Object.entries({ ...operation.answers, 431: tooLarge }).map(([status, answer]) => {
    const made = answerOf(answer)
    const name = shared.get(JSON.stringify(made))
    return [status, name === undefined ? made : { $ref: `#/components/responses/${name}` }]
  })
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description !== undefined && { description }),
    ...(security && { security: [...(tag === 'gateway' ? [{}] : []), ...security.map((name) => ({ [name]: [] }))] }),
    ...(parameters && { parameters: parameters.map(parameterOf) }),
    ...(body && { requestBody: { required: body.required, content: { 'application/json': mediaOf(body.schema) } } }),
    responses: Object.fromEntries(answers),
  }
}

/** What a host answers before it has read the request: the same for every operation. */
const tooLarge: Answer = {
  description: 'Request line and headers have more than 16 kB.',
  headers: ['Cache-Control', 'Access-Control-Allow-Origin'],
  content: { 'application/json': generalErrorSchema },
}

function parameterOf({ name, in: place, required = false, schema, description }: Parameter): Json {
  const { description: own, examples, ...rest } = plain(z.toJSONSchema(schema))
  const told = description ?? own
  const [example] = (examples as unknown[] | undefined) ?? []
  return {
    name,
    in: place,
    required,
    ...(told !== undefined && { description: told }),
    schema: rest,
    ...(example !== undefined && { example }),
  }
}

/** `required: false` is said only of headers that come sometimes: the contract tests demand all others. */
function answerOf({ description, headers: always = [], sometimes = [], content }: Answer): Json {
  const named: readonly HeaderName[] = ['X-Request-Id', ...always]
  return {
    description,
    headers: {
      ...Object.fromEntries(named.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
      ...Object.fromEntries(sometimes.map((name) => [name, { ...headerOf(headers[name]), required: false }])),
    },
    ...(content && {
      content: Object.fromEntries(Object.entries(content).map(([type, schema]) => [type, mediaOf(schema)])),
    }),
  }
}

function headerOf({ schema, description }: { readonly schema: z.ZodType; readonly description: string }): Json {
  return { description, schema: plain(z.toJSONSchema(schema)) }
}

function mediaOf(schema: z.ZodType | readonly z.ZodType[]): Json {
  const refs = [schema].flat().map((one) => ({ $ref: `#/components/schemas/${idOf(one as z.ZodType)}` }))
  return { schema: refs.length === 1 ? refs[0] : { anyOf: refs } }
}

/** Every body is a named schema; what it is made of is a schema of its own where it has a name too. */
function schemasOf(all: readonly Operation[]): Json {
  const bodies = all.flatMap(({ answers, body }) => [
    ...(body ? [body.schema] : []),
    ...Object.values(answers).flatMap(({ content = {} }) => Object.values(content).flat()),
  ]) as z.ZodType[]
  const registry = z.registry<{ id: string }>()
  for (const schema of new Set([...bodies, generalErrorSchema, ...parts])) registry.add(schema, { id: idOf(schema) })
  const made = z.toJSONSchema(registry, { uri: (id) => `#/components/schemas/${id}`, override: whole }).schemas
  return Object.fromEntries(
    Object.entries(made)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([id, schema]) => [id, plain(schema)]),
  )
}

/** A list of whole numbers is a list of integers to those who generate code from it (spec §2.1 `state_code`). */
function whole({ jsonSchema }: { readonly jsonSchema: { type?: unknown; enum?: unknown[]; const?: unknown } }): void {
  const values = jsonSchema.enum ?? (jsonSchema.const === undefined ? [] : [jsonSchema.const])
  if (jsonSchema.type === 'number' && values.length > 0 && values.every(Number.isInteger)) jsonSchema.type = 'integer'
}

function idOf(schema: z.ZodType): string {
  const id = z.globalRegistry.get(schema)?.id
  if (id === undefined) throw new Error('A body of the description has no id.')
  return id
}

function plain(schema: object): Json {
  const { $schema: _dialect, $id: _id, ...rest } = schema as Json
  return rest
}

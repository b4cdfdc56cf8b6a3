/** Joins schema.graphql (spec §2.9, §4.9) with its resolvers. A field without a resolver reads the property of its name. */
import { readFileSync } from 'node:fs'
import {
  buildSchema,
  GraphQLError,
  isInterfaceType,
  isObjectType,
  isScalarType,
  valueFromASTUntyped,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  type ValueNode,
} from 'graphql'
import { parseDay, parseInstant } from '../domain/text.ts'
import { enforceRights } from './access/enforce.ts'
import type { GraphqlContext } from './context.ts'

/** Sources and arguments have the types of the schema; each resolver declares those it reads. */
export type Resolver = (source: never, args: never, context: GraphqlContext, info: GraphQLResolveInfo) => unknown
type Subscriber = { readonly subscribe: Resolver; readonly resolve: Resolver }
/** Resolvers by type and field; `__resolveType` of an interface names the type of an object. */
export type ResolverMap = Readonly<Record<string, Readonly<Record<string, Resolver | Subscriber>>>>

const schemaText = readFileSync(new URL('./schema.graphql', import.meta.url), 'utf8')

/** Builds the schema with the rights that its fields need. Throws when a resolver has no field, or a root field no rule. */
export function graphqlSchema(...maps: readonly ResolverMap[]): GraphQLSchema {
  const schema = buildSchema(schemaText)
  for (const [name, scalar] of Object.entries(scalars)) {
    const type = schema.getType(name)
    if (isScalarType(type)) Object.assign(type, scalar)
  }
  for (const [typeName, fields] of maps.flatMap((map) => Object.entries(map))) {
    const type = schema.getType(typeName)
    if (isInterfaceType(type)) {
      Object.assign(type, { resolveType: fields['__resolveType'] })
      continue
    }
    if (!isObjectType(type)) throw new Error(`The schema has no object type ${typeName}.`)
    for (const [fieldName, resolver] of Object.entries(fields)) {
      const field = type.getFields()[fieldName]
      if (field === undefined) throw new Error(`The type ${typeName} has no field ${fieldName}.`)
      Object.assign(field, typeof resolver === 'function' ? { resolve: resolver } : resolver)
    }
  }
  return enforceRights(schema)
}

type Scalar = {
  readonly serialize?: (value: unknown) => unknown
  readonly parseValue: (value: unknown) => unknown
  readonly parseLiteral: (node: ValueNode, variables?: Record<string, unknown> | null) => unknown
}

/** Ids, instants (RFC 3339), days and JSON. Resolvers handle all but JSON as text. `ID` is one object for all schemas of the process. */
const scalars: Readonly<Record<string, Scalar>> = {
  ID: {
    parseValue: parseId,
    parseLiteral: (node) => parseId(node.kind === 'IntValue' ? Number(node.value) : textOf(node)),
  },
  DateTime: {
    serialize: (value) => (value instanceof Date ? value.toISOString() : shortenInstant(String(value))),
    ...parsingText(parseInstant, 'A DateTime is an RFC 3339 instant such as 2026-03-01T12:00:00Z.'),
  },
  Date: { serialize: String, ...parsingText(parseDay, 'A Date is a day such as 2026-03-01.') },
  JSON: {
    serialize: (value) => value,
    parseValue: (value) => value,
    parseLiteral: (node, variables) => valueFromASTUntyped(node, variables),
  },
}

/** Reads an id of text or a number. A number above 2^53 lost digits, and so names another product. */
function parseId(value: unknown): string {
  if (typeof value === 'string') return value
  if (Number.isSafeInteger(value)) return String(value)
  throw new GraphQLError('An id is text such as "7": a JSON number loses digits above 2^53.')
}

/** Shortens microseconds to milliseconds where nothing is lost. */
function shortenInstant(instant: string): string {
  return instant.replace(/(\.\d{3})000Z$/, '$1Z')
}

function parsingText(
  parseText: (text: string) => string | null,
  expected: string,
): Pick<Scalar, 'parseValue' | 'parseLiteral'> {
  const parseValue = (value: unknown) => {
    const parsed = typeof value === 'string' && value.length <= 40 ? parseText(value) : null
    if (parsed === null) throw new GraphQLError(expected)
    return parsed
  }
  return { parseValue, parseLiteral: (node) => parseValue(textOf(node)) }
}

function textOf(node: ValueNode): string | null {
  return node.kind === 'StringValue' ? node.value : null
}

/** The reference pages of the documentation: the operations of service/openapi.yaml, and the types of the GraphQL schema. */
import { readFileSync } from 'node:fs'
import {
  buildSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isScalarType,
  isSpecifiedScalarType,
  isUnionType,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLNamedType,
} from 'graphql'
import { readOpenApi } from '../service/src/discovery/openapi.ts'
import { code, tableOf } from './markdown-table.ts'

type Operation = {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
} & Readonly<Record<'responses', Readonly<Record<string, unknown>>>>
type Description = {
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

const methods = ['get', 'post', 'put', 'delete']

/** Returns a section for each tag, a row for each operation. */
export function apiReference(): string {
  const { tags, paths } = JSON.parse(readOpenApi()) as Description
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const operation = item[method]
      return operation === undefined ? [] : [{ path, method, operation }]
    }),
  )
  return tags
    .map(({ name, description }) => {
      const rows = operations
        .filter(({ operation }) => operation.tags.includes(name))
        .map(({ path, method, operation: { operationId, summary, responses } }) => [
          `[${code(`${method.toUpperCase()} ${path}`)}](/docs/api/try#/${name}/${operationId})`,
          summary,
          Object.keys(responses).join(', '),
        ])
      return `## ${capital(name)}\n\n${description}\n\n${tableOf(['Request', 'Effect', 'Answers'], rows)}`
    })
    .join('\n\n')
}

/** Returns a section for each operation, type, input, enumeration and scalar. */
export function schemaReference(): string {
  const schema = buildSchema(readFileSync(new URL('../service/src/graphql/schema.graphql', import.meta.url), 'utf8'))
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()].flatMap((type) =>
    type ? [type] : [],
  )
  const types = Object.values(schema.getTypeMap()).filter(
    (type) => !type.name.startsWith('__') && !isSpecifiedScalarType(type) && !roots.some((root) => root === type),
  )
  const parts: readonly (readonly [string, readonly GraphQLNamedType[]])[] = [
    ['Types', types.filter((type) => isObjectType(type) || isInterfaceType(type) || isUnionType(type))],
    ['Inputs', types.filter(isInputObjectType)],
    ['Enumerations', types.filter(isEnumType)],
    ['Scalars', types.filter(isScalarType)],
  ]
  return [
    ...roots.map((type) =>
      [
        `## ${type.name === 'Query' ? 'Queries' : `${type.name}s`}`,
        lineOf(type.description),
        ...Object.values(type.getFields()).map((field) => operationText(type.name.toLowerCase(), field)),
      ].join('\n\n'),
    ),
    ...parts.map(([title, list]) => [`## ${title}`, ...list.map(typeText)].join('\n\n')),
  ].join('\n\n')
}

function operationText(kind: string, field: GraphQLField<unknown, unknown>): string {
  const rows = field.args.map(({ name, type, description, defaultValue }) => [
    code(name),
    linked(String(type)),
    lineOf(description) + (defaultValue === undefined ? '' : ` Default ${code(JSON.stringify(defaultValue))}.`),
  ])
  return [
    `### ${kind} ${field.name}`, // a query may have the name of a type, and each heading is an anchor
    lineOf(field.description),
    `Returns ${linked(String(field.type))}.`,
    ...(rows.length > 0 ? [tableOf(['Argument', 'Type', 'Meaning'], rows)] : []),
  ].join('\n\n')
}

function typeText(type: GraphQLNamedType): string {
  const body = isEnumType(type)
    ? tableOf(
        ['Value', 'Meaning'],
        type.getValues().map(({ name, description }) => [code(name), lineOf(description)]),
      )
    : isUnionType(type)
      ? `One of ${type
          .getTypes()
          .map((one) => linked(one.name))
          .join(', ')}.`
      : isScalarType(type)
        ? ''
        : tableOf(['Field', 'Type', 'Meaning'], Object.values(type.getFields()).map(fieldRow))
  return [`### ${type.name}`, lineOf(type.description), body].filter(Boolean).join('\n\n')
}

function fieldRow(field: GraphQLField<unknown, unknown> | GraphQLInputField): readonly string[] {
  const given = 'args' in field && field.args.length > 0 ? `(${field.args.map(({ name }) => name).join(', ')})` : ''
  return [code(field.name + given), linked(String(field.type)), lineOf(field.description)]
}

/** Writes `[Product!]!` with a link on the name; the scalars of GraphQL itself have none. */
function linked(type: string): string {
  const name = type.replace(/[[\]!]/g, '')
  const [before = '', after = ''] = type.split(name)
  const isOwn = !['ID', 'Int', 'Float', 'String', 'Boolean'].includes(name)
  return isOwn ? `${escaped(before)}[${name}](#${name.toLowerCase()})${escaped(after)}` : code(type)
}

const escaped = (text: string) => text.replace(/[[\]]/g, '\\$&')

function lineOf(description: string | null | undefined): string {
  return (description ?? '').replace(/\s*\n\s*/g, ' ')
}

function capital(text: string): string {
  return text === 'graphql' ? 'GraphQL' : text.charAt(0).toUpperCase() + text.slice(1)
}

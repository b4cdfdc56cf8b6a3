/** Joins schema.graphql (spec §2.9, §4.9) with its resolvers. A field without a resolver reads the property of its name. */
import { readFileSync } from 'node:fs'
import { buildSchema, isObjectType, isScalarType, type GraphQLResolveInfo, type GraphQLSchema } from 'graphql'
import type { GraphqlContext } from './context.ts'
import { scalars } from './scalars.ts'

/** Sources and arguments have the types of the schema; each resolver declares those it reads. */
export type Resolver = (source: never, args: never, context: GraphqlContext, info: GraphQLResolveInfo) => unknown
type Subscriber = { readonly subscribe: Resolver; readonly resolve: Resolver }
/** Resolvers by type and field. */
export type ResolverMap = Readonly<Record<string, Readonly<Record<string, Resolver | Subscriber>>>>

const schemaText = readFileSync(new URL('./schema.graphql', import.meta.url), 'utf8')

/** Builds the schema. Throws when a resolver has no field. */
export function graphqlSchema(...maps: readonly ResolverMap[]): GraphQLSchema {
  const schema = buildSchema(schemaText)
  for (const [name, scalar] of Object.entries(scalars)) {
    const type = schema.getType(name)
    if (isScalarType(type)) Object.assign(type, scalar)
  }
  for (const [typeName, fields] of maps.flatMap((map) => Object.entries(map))) {
    const type = schema.getType(typeName)
    if (!isObjectType(type)) throw new Error(`The schema has no object type ${typeName}.`)
    for (const [fieldName, resolver] of Object.entries(fields)) {
      const field = type.getFields()[fieldName]
      if (field === undefined) throw new Error(`The type ${typeName} has no field ${fieldName}.`)
      Object.assign(field, typeof resolver === 'function' ? { resolve: resolver } : resolver)
    }
  }
  return schema
}

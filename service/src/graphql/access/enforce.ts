/** Enforces the rules of `rules.ts` on a schema: the only place where the rights of a key are compared with what it asks for. */
import { untrustedOf } from '@touchstone/verdict'
import { defaultFieldResolver, type GraphQLFieldResolver, type GraphQLSchema, isObjectType } from 'graphql'
import type { GraphqlContext } from '../context.ts'
import { readInput, type InputError } from '../mutations/inputs.ts'
import { demandVerb, permits } from './rights.ts'
import { type Rule, type RuleArguments, rules } from './rules.ts'

type FieldResolver = GraphQLFieldResolver<unknown, GraphqlContext>

/** Wraps the fields of a schema by their rules. Throws when a field of Query, Mutation or Subscription has no rule. */
export function enforceRights(schema: GraphQLSchema): GraphQLSchema {
  for (const type of [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()])
    for (const field of Object.keys(type?.getFields() ?? {}))
      if (rules[`${type?.name}.${field}`] === undefined)
        throw new Error(`${type?.name}.${field} has no rule of access.`)
  for (const [name, rule] of Object.entries(rules)) {
    const [typeName = '', fieldName = ''] = name.split('.')
    const type = schema.getType(typeName)
    const field = isObjectType(type) ? type.getFields()[fieldName] : undefined
    if (field === undefined) throw new Error(`The schema has no field ${name}, for which there is a rule of access.`)
    if (field.subscribe === undefined) field.resolve = guarded(rule, field.resolve ?? defaultFieldResolver)
    else field.subscribe = guarded(rule, field.subscribe)
  }
  return schema
}

function guarded({ needs, about }: Rule, resolve: FieldResolver): FieldResolver {
  return (source, args, context, info) => {
    for (const need of needs(args as RuleArguments)) demandVerb(context.verbs, need)
    if (about === undefined || about === 'approval' || context.key.brands === null)
      return resolve(source, args, context, info)
    return scopeError(about, args.input as ScopedInput, context).then((error) =>
      error === null ? resolve(source, args, context, info) : { success: false, errors: [error], txHash: null },
    )
  }
}

type ScopedInput = Readonly<{ productId?: string | null; transferId?: string | null; brand?: string | null }>

/**
 * Returns why a key with brands may not send an input. A product of another brand is refused as one that does not exist, before anything
 * else is looked at. An id that is malformed is left to the reader of the input.
 */
async function scopeError(
  about: 'product' | 'brand',
  input: ScopedInput,
  context: GraphqlContext,
): Promise<InputError | null> {
  const { brands } = context.key
  if (about === 'brand') {
    const brand = untrustedOf({ brand: input.brand }).brand ?? null
    if (permits(brands, { brand })) return null
    return {
      field: 'brand',
      message: `This API key registers products of ${(brands ?? []).join(', ')} only: send one as brand.`,
    }
  }
  const named = readInput((read) => ({
    productId: typeof input.productId === 'string' ? read.productId(input.productId) : undefined,
    transferId: typeof input.transferId === 'string' ? read.transferId(input.transferId)?.tokenId : undefined,
  }))
  if (!named.ok) return null
  for (const [field, tokenId] of Object.entries(named.values))
    if (tokenId !== undefined && !permits(brands, await context.loaders.productByToken.load(tokenId)))
      return { field, message: `Product ${tokenId} does not exist.` }
  return null
}

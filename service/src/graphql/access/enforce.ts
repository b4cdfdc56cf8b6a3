/** Enforces the rules of `rules.ts` on a schema. Only here the rights of a key are compared with its request. */
import { parseTokenId, untrustedOf } from '@touchstone/verdict'
import {
  defaultFieldResolver,
  GraphQLError,
  type GraphQLFieldResolver,
  type GraphQLSchema,
  isObjectType,
} from 'graphql'
import type { GraphqlContext } from '../context.ts'
import { graphqlError } from '../errors.ts'
import type { InputError } from '../mutations/inputs.ts'
import { permits, type Verb } from '../../access/rights.ts'
import { parseTransferId } from '../../ownership/transfer-id.ts'
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
    const checked = guarded(rule, field.subscribe ?? field.resolve ?? defaultFieldResolver)
    if (field.subscribe !== undefined) field.subscribe = checked
    else field.resolve = typeName === 'Mutation' ? noted(fieldName, rule, clearing(checked)) : checked
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

/** Clears the loaders at the end of a step. Its payload, and the steps behind it, show what it has changed. */
function clearing(resolve: FieldResolver): FieldResolver {
  return async (source, args, context, info) => {
    try {
      return (await resolve(source, args, context, info)) as unknown
    } finally {
      for (const loader of Object.values(context.loaders)) loader.clearAll()
    }
  }
}

type Payload = Readonly<{
  success?: boolean
  errors?: readonly InputError[]
  txHash?: string | null
  approval?: { readonly status: string } | null
}>

/**
 * Notes a mutation that was refused: by the rights of its key, by the input, or by the chain. One that was signed has its entries
 * already, and so have requests for approval and their decisions. A step that comes too late is not begun, and not noted.
 */
function noted(act: string, { about }: Rule, resolve: FieldResolver): FieldResolver {
  return async (source, args, context, info) => {
    if (context.tooLate?.aborted === true) return { success: false, errors: [notBegun], txHash: null }
    const { productId, transferId, approvalId } = (args.input ?? {}) as Readonly<Record<string, unknown>>
    const subject = [productId, transferId, approvalId].find(isId) ?? ''
    const note = (because: string) => context.noteRefusal({ act, subject, because })
    let payload: Payload
    try {
      payload = (await resolve(source, args, context, info)) as Payload
    } catch (error) {
      if (error instanceof GraphQLError && error.extensions['code'] === 'FORBIDDEN') await note(error.message)
      throw error
    }
    const { success, errors, txHash, approval } = payload
    const hasEntry = about === 'approval' || (txHash ?? null) !== null || (approval ?? null) !== null
    if (success === false && !hasEntry) await note(errors?.map(({ field, message }) => `${field}: ${message}`)[0] ?? '')
    return payload
  }
}

const notBegun: InputError = {
  field: 'input',
  message: 'Nothing was done: the steps before this one took too long. Send it again.',
}

/** Recognises an id of a product, transfer or request. No other text of a caller enters the audit trail: it is kept for ever. */
function isId(value: unknown): value is string {
  return typeof value === 'string' && /^(?:\d{1,78}(?:-\d{1,10}){0,2}|[a-z0-9]{12})$/.test(value)
}

type ScopedInput = Readonly<{ productId?: string | null; transferId?: string | null; brand?: string | null }>

/**
 * Returns why a key with brands may not send an input. A product of another brand is refused as one that does not exist, before anything
 * else is looked at, whatever the other id is. An id that is malformed is left to the reader of the input.
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
  const named = {
    productId: parseTokenId(input.productId ?? ''),
    transferId: parseTransferId(input.transferId ?? '')?.tokenId ?? null,
  }
  for (const [field, tokenId] of Object.entries(named))
    if (tokenId !== null && !permits(brands, await context.loaders.productByToken.load(tokenId)))
      return { field, message: `Product ${tokenId} does not exist.` }
  return null
}

/** Throws FORBIDDEN where none of the verbs that suffice is among those of the key. */
function demandVerb(own: ReadonlySet<Verb>, sufficient: readonly Verb[]): void {
  if (sufficient.some((verb) => own.has(verb))) return
  const named = sufficient.join(' or ')
  throw graphqlError('FORBIDDEN', `This API key lacks the scope ${named}. Make one with: touchstone key create`)
}

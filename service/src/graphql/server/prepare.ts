/**
 * Prepares operations of HTTP and socket alike (spec §8): tokens, depth, aliases, validity, variables, cost.
 * Valid documents are cached, because clients send the same texts again and again.
 */
import {
  type DocumentNode,
  type ExecutionArgs,
  getOperationAST,
  getVariableValues,
  GraphQLError,
  type GraphQLSchema,
  Kind,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
  parse,
  type SelectionSetNode,
  specifiedRules,
  validate,
} from 'graphql'
import { LRUCache } from 'lru-cache'
import { graphqlError } from '../errors.ts'
import { costOf, fragmentsOf, maxCost, shapeError } from './limits.ts'

/** `listing`: the operation reads lists only. `args` lack the context. */
type Prepared =
  | {
      readonly ok: true
      readonly kind: OperationDefinitionNode['operation']
      readonly listing: boolean
      readonly args: Required<Pick<ExecutionArgs, 'schema' | 'document' | 'operationName' | 'variableValues'>>
    }
  | { readonly ok: false; readonly errors: readonly GraphQLError[] }

export type PrepareOperation = (request: {
  readonly query: string
  readonly operationName?: string | null | undefined
  readonly variables?: Readonly<Record<string, unknown>> | null | undefined
}) => Prepared

const maxTokens = 2_000
const maxDocuments = 500
const maxCachedLength = 8_192
/** The deepest filter and the deepest custom fields need ten levels of JSON. */
const maxVariableDepth = 16

export function createPrepareOperation({
  schema,
  introspection = true,
}: {
  readonly schema: GraphQLSchema
  readonly introspection?: boolean
}): PrepareOperation {
  const rules = introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule]
  const documents = new LRUCache<string, DocumentNode>({ max: maxDocuments })

  /** Returns the valid document, or its errors. */
  function readDocument(query: string): DocumentNode | readonly GraphQLError[] {
    const known = documents.get(query)
    if (known !== undefined) return known
    const document = parseDocument(query)
    if (document instanceof GraphQLError) return [document]
    const tooLarge = shapeError(document)
    if (tooLarge !== null) return [graphqlError('TOO_COMPLEX', tooLarge)]
    const errors = validate(schema, document, rules, { maxErrors: 20 })
    if (errors.some(({ message }) => message === 'Validation aborted.'))
      return [graphqlError('TOO_COMPLEX', 'The document asks for the same fields too often.')]
    if (errors.length > 0) return errors
    if (query.length <= maxCachedLength) documents.set(query, document)
    return document
  }

  return ({ query, operationName, variables }) => {
    const document = readDocument(query)
    if (!('kind' in document)) return { ok: false, errors: document }
    const operation = getOperationAST(document, operationName) ?? null
    if (operation === null)
      return rejected('BAD_USER_INPUT', 'Name the operation to run in operationName: the document has several or none.')
    const variableValues = variables ?? {}
    if (isDeeper(variableValues, maxVariableDepth))
      return rejected('BAD_USER_INPUT', 'The variables are nested too deeply.')
    const definitions = operation.variableDefinitions ?? []
    const { coerced, errors } = getVariableValues(schema, definitions, variableValues, { maxErrors: 20 })
    if (errors !== undefined) return { ok: false, errors }
    if (costOf(schema, document, operation, coerced) > maxCost) return rejected('TOO_COMPLEX', tooExpensive)
    return {
      ok: true,
      kind: operation.operation,
      listing: isListing(document, operation),
      args: { schema, document, operationName: operationName ?? null, variableValues },
    }
  }
}

const tooExpensive = `The operation costs more than ${maxCost}: ask for fewer items, or for fewer relations of each.`

function parseDocument(query: string): DocumentNode | GraphQLError {
  try {
    return parse(query, { maxTokens })
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error
    return error.message.includes(`more that ${maxTokens} tokens`)
      ? graphqlError('TOO_COMPLEX', `The document has more than ${maxTokens} tokens.`)
      : error
  }
}

function rejected(...error: Parameters<typeof graphqlError>): Prepared {
  return { ok: false, errors: [graphqlError(...error)] }
}

/** Walks level by level: recursion would follow the caller's depth. */
function isDeeper(value: unknown, most: number): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; depth <= most; depth += 1) {
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []))
    if (level.length === 0) return false
  }
  return true
}

const lists = new Set(['products', 'transfers', '__typename', '__schema', '__type'])

/** Returns whether a valid query reads lists only, so that a database a few seconds behind may answer it. */
export function isListing(document: DocumentNode, { operation, selectionSet }: OperationDefinitionNode): boolean {
  const fragments = fragmentsOf(document)
  const onlyLists = ({ selections }: SelectionSetNode): boolean =>
    selections.every((node) => {
      if (node.kind === Kind.FIELD) return lists.has(node.name.value)
      const fragment = node.kind === Kind.INLINE_FRAGMENT ? node : fragments.get(node.name.value)
      return fragment !== undefined && onlyLists(fragment.selectionSet)
    })
  return operation === 'query' && onlyLists(selectionSet)
}

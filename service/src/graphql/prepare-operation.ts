/**
 * Everything that is checked before an operation may run, for HTTP and socket alike (spec §8): tokens, depth, aliases,
 * validity, variables, cost. Parsed and checked documents are kept, because clients send the same texts again and again.
 */
import {
  getOperationAST,
  getVariableValues,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  validate,
  GraphQLError,
  type DocumentNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql'
import { graphqlError } from './error-codes.ts'
import { costOf, maxCost } from './operation-cost.ts'
import { isListing } from './operation-lists.ts'
import { shapeRefusal } from './operation-shape.ts'
import { createRecent } from './recent.ts'

export type OperationRequest = {
  readonly query: string
  readonly operationName?: string | null | undefined
  readonly variables?: Readonly<Record<string, unknown>> | null | undefined
}

/** `args` are what `execute` and `subscribe` take, but for the context. */
type Prepared =
  | {
      readonly ok: true
      readonly kind: OperationDefinitionNode['operation']
      /** Lists and nothing else. */
      readonly listing: boolean
      readonly args: {
        readonly schema: GraphQLSchema
        readonly document: DocumentNode
        readonly operationName: string | null
        readonly variableValues: Record<string, unknown>
      }
    }
  | { readonly ok: false; readonly errors: readonly GraphQLError[] }

export type PrepareOperation = (request: OperationRequest) => Prepared

const maxTokens = 2_000
const maxCachedLength = 8_192
/** Of the variables as JSON; the deepest filter and the deepest custom fields need ten. */
const maxVariableDepth = 16

export function createPrepareOperation({
  schema,
  introspection = true,
  maxDocuments = 500,
}: {
  readonly schema: GraphQLSchema
  readonly introspection?: boolean
  readonly maxDocuments?: number
}): PrepareOperation {
  const rules = introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule]
  const documents = createRecent<string, DocumentNode>(maxDocuments)

  /** The checked document, or why it is refused. */
  function read(query: string): DocumentNode | readonly GraphQLError[] {
    const known = documents.get(query)
    if (known !== undefined) return known
    const document = parsed(query)
    if (document instanceof GraphQLError) return [document]
    const refusal = shapeRefusal(document)
    if (refusal !== null) return [graphqlError('TOO_COMPLEX', refusal)]
    const errors = validate(schema, document, rules, { maxErrors: 20 })
    if (errors.some(({ message }) => message === 'Validation aborted.'))
      return [graphqlError('TOO_COMPLEX', sameFields)]
    if (errors.length > 0) return errors
    if (query.length <= maxCachedLength) documents.set(query, document)
    return document
  }

  return ({ query, operationName, variables }) => {
    const document = read(query)
    if (!('kind' in document)) return { ok: false, errors: document }
    const operation = getOperationAST(document, operationName) ?? null
    if (operation === null)
      return refused('Name the operation to run in operationName: the document has several or none.')
    const given = variables ?? {}
    if (isDeeper(given, maxVariableDepth)) return refused('The variables are nested too deeply.')
    const { coerced, errors } = getVariableValues(schema, operation.variableDefinitions ?? [], given, { maxErrors: 20 })
    if (errors !== undefined) return { ok: false, errors }
    const cost = costOf(schema, document, operation, coerced)
    if (cost > maxCost) return { ok: false, errors: [graphqlError('TOO_COMPLEX', costSentence)] }
    return {
      ok: true,
      kind: operation.operation,
      listing: isListing(document, operation),
      args: { schema, document, operationName: operationName ?? null, variableValues: given },
    }
  }
}

const sameFields = 'The document asks for the same fields too often.'
const costSentence = `The operation costs more than ${maxCost}: ask for fewer items, or for fewer relations of each.`

function parsed(query: string): DocumentNode | GraphQLError {
  try {
    return parse(query, { maxTokens })
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error
    return error.message.includes(`more that ${maxTokens} tokens`)
      ? graphqlError('TOO_COMPLEX', `The document has more than ${maxTokens} tokens.`)
      : error
  }
}

function refused(message: string): Prepared {
  return { ok: false, errors: [graphqlError('BAD_USER_INPUT', message)] }
}

/** Without recursion, because the depth is the caller's. */
function isDeeper(value: unknown, most: number): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; depth <= most; depth += 1) {
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []))
    if (level.length === 0) return false
  }
  return true
}

/**
 * Prepares operations of HTTP and socket alike (spec §8): tokens, depth, aliases, validity, variables, cost.
 * Valid documents are cached, because clients send the same texts again and again.
 */
import {
  getNamedType,
  getOperationAST,
  getVariableValues,
  GraphQLError,
  isCompositeType,
  isObjectType,
  Kind,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  validate,
  type DocumentNode,
  type ExecutionArgs,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLNamedType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql'
import { LRUCache } from 'lru-cache'
import { graphqlError } from '../errors.ts'
import { defaultPage, maxPage } from '../queries/pages.ts'

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
const maxCost = 1_000
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
      const spread = spreadOf(node, fragments)
      return spread !== undefined && onlyLists(spread)
    })
  return operation === 'query' && onlyLists(selectionSet)
}

/** Limits on the shape of a document. Fragments count where they are spread. */
const maxDepth = 8
const maxAliases = 30
/** Fields and spreads of one operation, introspection included. */
const maxSelections = 1_000

/**
 * Returns why a document nests too deep or repeats itself too often, or null. Introspection may nest deeper, as its tools do.
 * It runs before validation, whose work grows with the square of the number of fields.
 */
function shapeError(document: DocumentNode): string | null {
  const fragments = fragmentsOf(document)
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION && definition.kind !== Kind.FRAGMENT_DEFINITION) continue
    const error = definitionError(definition, fragments)
    if (error !== null) return error
  }
  return null
}

type Fragments = ReadonlyMap<string, FragmentDefinitionNode>

function fragmentsOf({ definitions }: DocumentNode): Fragments {
  return new Map(definitions.flatMap((one) => (one.kind === Kind.FRAGMENT_DEFINITION ? [[one.name.value, one]] : [])))
}

/** Returns what an inline fragment or a spread stands for; undefined for an unknown fragment. */
function spreadOf(node: Exclude<SelectionNode, FieldNode>, fragments: Fragments): SelectionSetNode | undefined {
  return (node.kind === Kind.INLINE_FRAGMENT ? node : fragments.get(node.name.value))?.selectionSet
}

function definitionError(
  { kind, selectionSet }: OperationDefinitionNode | FragmentDefinitionNode,
  fragments: Fragments,
): string | null {
  let [aliases, repeats, selections] = [0, 0, 0]

  /** `open` names the fragments on the path, so that a cycle ends; validation reports it. */
  function walk({ selections: nodes }: SelectionSetNode, depth: number, open: readonly string[]): string | null {
    const names = new Set<string>()
    for (const node of nodes) {
      selections += 1
      if (node.kind === Kind.FIELD) repeats += names.size === names.add((node.alias ?? node.name).value).size ? 1 : 0
      if (repeats > maxAliases) return 'The operation asks for the same fields too often.'
      if (selections > maxSelections) return `The operation has more than ${maxSelections} fields.`
      const error = visit(node, depth, open)
      if (error !== null) return error
    }
    return null
  }

  function visit(node: SelectionNode, depth: number, open: readonly string[]): string | null {
    if (node.kind === Kind.INLINE_FRAGMENT) return walk(node.selectionSet, depth, open)
    const name = node.name.value
    if (node.kind === Kind.FRAGMENT_SPREAD) {
      const fragment = open.includes(name) ? undefined : fragments.get(name)
      return fragment === undefined ? null : walk(fragment.selectionSet, depth, [...open, name])
    }
    if (node.alias !== undefined) aliases += 1
    if (aliases > maxAliases) return `The operation has more than ${maxAliases} aliases.`
    const isExempt = name === '__schema' || name === '__type'
    if (!isExempt && depth > maxDepth) return `The operation nests deeper than ${maxDepth} fields.`
    if (node.selectionSet === undefined) return null
    return walk(node.selectionSet, isExempt ? -Infinity : depth + 1, open)
  }

  // The depth of a fragment is measured where it is spread.
  return walk(selectionSet, kind === Kind.OPERATION_DEFINITION ? 1 : -Infinity, [])
}

/** Types that are read by themselves; the others come with these. */
const read = new Set(['Product', 'Transfer', 'HistoryEvent', 'ProductMetadata'])
/** Estimated length of Product.transfers, which takes no size. */
const usualTransfers = 10
const countCost = 10
const mutationCost = 50
const chainReadCost = 20

type Variables = Readonly<Record<string, unknown>>
type ParentType = GraphQLNamedType | null | undefined

/** Returns the number of objects that a validated operation reads: each list by its requested size, times the cost of an item. */
function costOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  { operation, selectionSet }: OperationDefinitionNode,
  variables: Variables,
): number {
  const fragments = fragmentsOf(document)
  return selectionsCost(selectionSet, schema.getRootType(operation))

  function selectionsCost(set: SelectionSetNode | undefined, type: ParentType): number {
    return (set?.selections ?? []).reduce((cost, node) => cost + selectionCost(node, type), 0)
  }

  function selectionCost(node: SelectionNode, type: ParentType): number {
    return node.kind === Kind.FIELD ? fieldCost(node, type) : selectionsCost(spreadOf(node, fragments), type)
  }

  function fieldCost(node: FieldNode, parent: ParentType): number {
    const name = node.name.value
    if (name === 'totalCount') return countCost
    if (!isObjectType(parent) || node.selectionSet === undefined) return 0
    const type = getNamedType(parent.getFields()[name]?.type)
    if (!isCompositeType(type)) return 0 // introspection
    const own = parent.name === 'Mutation' ? mutationCost : name === 'transferTypedData' ? chainReadCost : 0
    const each = (read.has(type.name) ? 1 : 0) + selectionsCost(node.selectionSet, type)
    return own + sizeOf(node, parent.name, variables) * each
  }
}

/** Returns how many items a field asks for. A size out of range is rejected later, by its resolver. */
function sizeOf(node: FieldNode, parent: string, variables: Variables): number {
  const name = node.name.value
  if (parent === 'Product' && name === 'transfers') return usualTransfers
  const isPage = (parent === 'Query' && (name === 'products' || name === 'transfers')) || name === 'history'
  if (!isPage) return 1
  const sizes = ['first', 'last']
    .map((argument) => getArgument(node, argument, variables))
    .filter((size): size is number => typeof size === 'number' && size > 0)
  return sizes.length === 0 ? defaultPage : Math.min(maxPage, Math.max(...sizes))
}

function getArgument(node: FieldNode, name: string, variables: Variables): unknown {
  const value = node.arguments?.find((one) => one.name.value === name)?.value
  if (value?.kind === Kind.VARIABLE) return variables[value.name.value]
  return value?.kind === Kind.INT ? Number(value.value) : undefined
}

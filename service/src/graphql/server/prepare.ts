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
  isInterfaceType,
  isObjectType,
  Kind,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  validate,
  valueFromAST,
  type DocumentNode,
  type ExecutionArgs,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql'
import { LRUCache } from 'lru-cache'
import { graphqlError } from '../errors.ts'
import { isObject } from '../../lib/json.ts'
import { defaultPage, maxPage } from '../queries/pages.ts'

/** `listing`: the operation reads lists only. `asksMeta`: it asks for the block of the index. `args` lack the context. */
type Prepared =
  | {
      readonly ok: true
      readonly kind: OperationDefinitionNode['operation']
      readonly listing: boolean
      readonly asksMeta: boolean
      readonly cost: number
      readonly args: Required<Pick<ExecutionArgs, 'schema' | 'document' | 'operationName' | 'variableValues'>>
    }
  | { readonly ok: false; readonly errors: readonly GraphQLError[] }

export type PrepareOperation = (request: {
  readonly query: string
  readonly operationName?: string | null | undefined
  readonly variables?: Readonly<Record<string, unknown>> | null | undefined
  /** The hash of a trusted document may be in these two. */
  readonly extensions?: unknown
  readonly documentId?: unknown
}) => Prepared

const maxTokens = 2_000
const maxCost = 1_000
const maxDocuments = 500
const maxCachedLength = 8_192
/** The text of all cached documents together. Their trees take up to a hundred times as much. */
const maxCachedText = 250_000
/** The deepest filter and the deepest custom fields need ten levels of JSON. */
const maxVariableDepth = 16
/** The coercion of one object looks at every field of its input type, and blocks all other requests meanwhile. */
const maxVariableObjects = 1_000
/** Each error has the text of the whole variable. */
const mostVariableErrors = 5

export function createPrepareOperation({
  schema,
  introspection = true,
}: {
  readonly schema: GraphQLSchema
  readonly introspection?: boolean
}): PrepareOperation {
  const rules = introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule]
  const documents = new LRUCache<string, DocumentNode>({ max: maxDocuments, maxSize: maxCachedText })

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
      return [graphqlError('TOO_COMPLEX', 'The document asks for the same fields too often. Ask for each field once.')]
    if (errors.length > 0) return errors
    if (query.length <= maxCachedLength) documents.set(query, document, { size: query.length })
    return document
  }

  return ({ query, operationName, variables }) => {
    const document = readDocument(query)
    if (!('kind' in document)) return { ok: false, errors: document }
    const operation = getOperationAST(document, operationName) ?? null
    if (operation === null)
      return rejectedOperation(
        'BAD_USER_INPUT',
        'Name the operation to run in operationName: the document has several or none.',
      )
    const variableValues = variables ?? {}
    const tooLarge = variablesError(variableValues)
    if (tooLarge !== null) return rejectedOperation(...tooLarge)
    const definitions = operation.variableDefinitions ?? []
    const { coerced, errors } = getVariableValues(schema, definitions, variableValues, {
      maxErrors: mostVariableErrors,
    })
    if (errors !== undefined) return { ok: false, errors }
    const cost = costOf(schema, document, operation, coerced)
    if (cost > maxCost) return { ok: false, errors: [tooExpensive(cost)] }
    return {
      ok: true,
      kind: operation.operation,
      listing: isListing(document, operation),
      asksMeta: rootFields(document, operation).includes('_meta'),
      cost,
      args: { schema, document, operationName: operationName ?? null, variableValues },
    }
  }
}

/** The cost of an operation as its result shows it. */
export function costExtensions(cost: number) {
  return { cost, maxCost }
}

function tooExpensive(cost: number): GraphQLError {
  const message = `The operation costs more than ${maxCost}: it costs ${cost}. Ask for fewer items, or for fewer relations of each.`
  return new GraphQLError(message, { extensions: { code: 'TOO_COMPLEX', ...costExtensions(cost) } })
}

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

export function rejectedOperation(...error: Parameters<typeof graphqlError>): Prepared {
  return { ok: false, errors: [graphqlError(...error)] }
}

/** Returns why variables are too large, or null. It walks level by level: recursion would follow the caller's depth. */
function variablesError(value: unknown): Parameters<typeof graphqlError> | null {
  let level: unknown[] = [value]
  let objects = 0
  for (let depth = 0; depth <= maxVariableDepth; depth += 1) {
    objects += level.filter(isObject).length
    if (objects > maxVariableObjects)
      return ['TOO_COMPLEX', `The variables have more than ${maxVariableObjects} objects.`]
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []))
    if (level.length === 0) return null
  }
  return ['BAD_USER_INPUT', 'The variables are nested too deeply. Send flat values, as the input types have them.']
}

const lists = new Set(['products', 'transfers', '__typename', '__schema', '__type'])

/** Returns whether a valid query reads lists only, so that a database a few seconds behind may answer it. */
export function isListing(document: DocumentNode, operation: OperationDefinitionNode): boolean {
  return operation.operation === 'query' && rootFields(document, operation).every((name) => lists.has(name))
}

/** Returns the names of the fields that a valid operation asks for first, those of its fragments among them. */
function rootFields(document: DocumentNode, { selectionSet }: OperationDefinitionNode): readonly string[] {
  const fragments = fragmentsOf(document)
  const namesOf = ({ selections }: SelectionSetNode): readonly string[] =>
    selections.flatMap((node) => {
      if (node.kind === Kind.FIELD) return [node.name.value]
      const spread = spreadOf(node, fragments)
      return spread === undefined ? [] : namesOf(spread)
    })
  return namesOf(selectionSet)
}

/** Limits on the shape of a document. Fragments count where they are spread. */
const maxDepth = 8
const maxAliases = 30
/** Fields and spreads of one operation, introspection included. */
const maxSelections = 1_000
/** Lists of the schema that one operation may select; the usual introspection has nine. Each has up to a hundred items, or a list for each. */
const maxSchemaLists = 20
const schemaLists = new Set('types directives fields args inputFields enumValues interfaces possibleTypes'.split(' '))

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
  let [aliases, repeats, selections, lists] = [0, 0, 0, 0]

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
    // Introspection, and a fragment by itself, have no depth.
    if (depth === -Infinity && schemaLists.has(name)) lists += 1
    if (lists > maxSchemaLists) return `The operation asks for more than ${maxSchemaLists} lists of the schema.`
    const isExempt = name === '__schema' || name === '__type'
    if (!isExempt && depth > maxDepth) return `The operation nests deeper than ${maxDepth} fields.`
    if (node.selectionSet === undefined) return null
    return walk(node.selectionSet, isExempt ? -Infinity : depth + 1, open)
  }

  // The depth of a fragment is measured where it is spread.
  return walk(selectionSet, kind === Kind.OPERATION_DEFINITION ? 1 : -Infinity, [])
}

/** Types that are read by themselves; the others come with these. */
const read = new Set(
  'Node Product Transfer HistoryEvent ProductMetadata ProductStat Meta Event Tap TapAnomaly Approval'.split(' '),
)
/** Texts of thousands of characters. Each costs as much as an object wherever it is selected, because every alias repeats it. */
const largeTexts = new Set(['Transfer.message', 'ProductMetadata.description', 'ProductMetadata.customFields'])
/** Estimated length of Product.transfers, which takes no size. */
const usualTransfers = 10
const countCost = 10
/** Each row is compared with every condition of a filter. The first is free for a page; a count costs by all of them. */
const conditionCost = 10
const mutationCost = 50
const chainReadCost = 20
const pastCost = 20
/** The products of an earlier block. Everything that changed since is computed again, and once more for their number. */
const pastListCost = 200

type Variables = Readonly<Record<string, unknown>>
type ParentType = GraphQLNamedType | null | undefined

/**
 * Returns the number of objects, large texts and fields under an alias that a validated operation reads. It counts each list by its
 * requested size, times the cost of an item.
 */
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
    return node.kind === Kind.FIELD
      ? fieldCost(node, type)
      : selectionsCost(spreadOf(node, fragments), conditionOf(node) ?? type)
  }

  /** Returns the type that a fragment is about; an inline one may name none. */
  function conditionOf(node: Exclude<SelectionNode, FieldNode>): ParentType {
    const fragment = node.kind === Kind.INLINE_FRAGMENT ? node : fragments.get(node.name.value)
    return fragment?.typeCondition && schema.getType(fragment.typeCondition.name.value)
  }

  function fieldCost(node: FieldNode, parent: ParentType): number {
    const name = node.name.value
    if (!(isObjectType(parent) || isInterfaceType(parent))) return 0
    // An answer repeats a text for every alias.
    if (node.selectionSet === undefined)
      return node.alias !== undefined || largeTexts.has(`${parent.name}.${name}`) ? 1 : 0
    const field = parent.getFields()[name]
    const type = getNamedType(field?.type)
    if (field === undefined || !isCompositeType(type)) return 0 // introspection
    const given = (argument: string) => argumentOf(node, field, argument, variables)
    const own =
      parent.name === 'Mutation'
        ? mutationCost
        : name === 'transferTypedData'
          ? chainReadCost
          : isObject(given('block'))
            ? pastCost
            : 0
    if (type.name.endsWith('Connection')) {
      const conditions = Math.max(1, leavesIn(given('filter')))
      const isPast = own > 0 && name === 'products'
      const list = (isPast ? pastListCost : own) + conditionCost * (conditions - 1)
      const count = countCost * conditions + (isPast ? pastListCost : 0)
      return list + connectionCost(node.selectionSet, type, { size: pageSizeOf(given('first'), given('last')), count })
    }
    const each = (read.has(type.name) ? 1 : 0) + selectionsCost(node.selectionSet, type)
    return own + (parent.name === 'Product' && name === 'transfers' ? usualTransfers : 1) * each
  }

  /** The items of a page cost as often as there are any. Fields of the connection itself cost once, `count` is the cost of its number. */
  function connectionCost(
    { selections }: SelectionSetNode,
    type: ParentType,
    list: Readonly<{ size: number; count: number }>,
  ): number {
    return selections.reduce((cost, node) => {
      if (node.kind === Kind.FIELD) {
        const name = node.name.value
        return cost + (name === 'totalCount' ? list.count : (name === 'edges' ? list.size : 1) * fieldCost(node, type))
      }
      const spread = spreadOf(node, fragments)
      return spread === undefined ? cost : cost + connectionCost(spread, type, list)
    }, 0)
  }
}

/** Returns the value of an argument; undefined where it is left out, or wrong, which is rejected later. */
function argumentOf(
  node: FieldNode,
  field: GraphQLField<unknown, unknown>,
  name: string,
  variables: Variables,
): unknown {
  const value = node.arguments?.find((one) => one.name.value === name)?.value
  const type = field.args.find((one) => one.name === name)?.type
  return value && type && valueFromAST(value, type, variables)
}

/** Returns the number of conditions of a filter. A list of values is one condition. */
function leavesIn(value: unknown): number {
  if (value === null || value === undefined) return 0
  const parts = Array.isArray(value) ? value.filter(isObject) : isObject(value) ? Object.values(value) : []
  return parts.length === 0 && !isObject(value) ? 1 : parts.reduce<number>((sum, part) => sum + leavesIn(part), 0)
}

/** Returns how many items a page may have. A size out of range is rejected later, by its resolver. */
function pageSizeOf(...given: readonly unknown[]): number {
  const sizes = given.filter((size): size is number => typeof size === 'number' && size >= 0)
  return sizes.length === 0 ? defaultPage : Math.min(maxPage, Math.max(...sizes))
}

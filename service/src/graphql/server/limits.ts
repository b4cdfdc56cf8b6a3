/** Limits on the shape and the cost of a document (spec §8). Fragments count where they are spread. */
import {
  getNamedType,
  isCompositeType,
  isObjectType,
  Kind,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLNamedType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql'
import { defaultPage, maxPage } from '../queries/pages.ts'

const maxDepth = 8
const maxAliases = 30
/** Fields and spreads of one operation, introspection included. */
const maxSelections = 1_000

/**
 * Returns why a document nests too deep or repeats itself too often, or null. Introspection may nest deeper, as its tools do.
 * It runs before validation, whose work grows with the square of the number of fields.
 */
export function shapeError(document: DocumentNode): string | null {
  const fragments = fragmentsOf(document)
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION && definition.kind !== Kind.FRAGMENT_DEFINITION) continue
    const error = definitionError(definition, fragments)
    if (error !== null) return error
  }
  return null
}

type Fragments = ReadonlyMap<string, FragmentDefinitionNode>

export function fragmentsOf({ definitions }: DocumentNode): Fragments {
  return new Map(definitions.flatMap((one) => (one.kind === Kind.FRAGMENT_DEFINITION ? [[one.name.value, one]] : [])))
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

export const maxCost = 1_000

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
export function costOf(
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
    if (node.kind === Kind.FIELD) return fieldCost(node, type)
    const fragment = node.kind === Kind.INLINE_FRAGMENT ? node : fragments.get(node.name.value)
    return selectionsCost(fragment?.selectionSet, type)
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

/**
 * What an operation costs (spec §8): the objects that it reads, each list counted with the size that it asks for, times what is
 * read of every item. It depends on the variables, so it is computed for every request.
 */
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
  type SelectionSetNode,
} from 'graphql'
import { fragmentsOf } from './operation-shape.ts'
import { defaultPage, maxPage } from './page-arguments.ts'

export const maxCost = 1_000

/** Objects that have to be read; the others come with them. */
const read = new Set(['Product', 'Transfer', 'HistoryEvent', 'ProductMetadata'])
/** Product.transfers has no size to ask for; few items change hands more often. */
const usualTransfers = 10
const countCost = 10
const mutationCost = 50
const chainReadCost = 20

type Variables = Readonly<Record<string, unknown>>

export function costOf(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  variables: Variables,
): number {
  const fragments = fragmentsOf(document)
  return ofSelections(operation.selectionSet, schema.getRootType(operation.operation))

  /** Of a validated document: there are no cycles, and operation-shape.ts has bounded how much there is to visit. */
  function ofSelections({ selections }: SelectionSetNode, type: GraphQLNamedType | null | undefined): number {
    let cost = 0
    for (const node of selections) {
      if (node.kind === Kind.FIELD) cost += ofField(node, type)
      else cost += ofFragment(node.kind === Kind.INLINE_FRAGMENT ? node : fragments.get(node.name.value), type)
    }
    return cost
  }

  function ofFragment(
    fragment: Pick<FragmentDefinitionNode, 'selectionSet'> | undefined,
    type: GraphQLNamedType | null | undefined,
  ): number {
    return fragment === undefined ? 0 : ofSelections(fragment.selectionSet, type)
  }

  function ofField(node: FieldNode, parent: GraphQLNamedType | null | undefined): number {
    const name = node.name.value
    if (name === 'totalCount') return countCost
    if (!isObjectType(parent) || node.selectionSet === undefined) return 0
    const type = getNamedType(parent.getFields()[name]?.type)
    if (!isCompositeType(type)) return 0 // introspection
    const each = (read.has(type.name) ? 1 : 0) + ofSelections(node.selectionSet, type)
    return ownCost(parent.name, name) + sizeOf(node, parent.name, variables) * each
  }
}

function ownCost(parent: string, field: string): number {
  if (parent === 'Mutation') return mutationCost
  return field === 'transferTypedData' ? chainReadCost : 0
}

/** How many items are asked for; a size out of range is refused later, by the field itself. */
function sizeOf(node: FieldNode, parent: string, variables: Variables): number {
  const name = node.name.value
  if (parent === 'Product' && name === 'transfers') return usualTransfers
  const isPage = (parent === 'Query' && (name === 'products' || name === 'transfers')) || name === 'history'
  if (!isPage) return 1
  const asked = [argument(node, 'first', variables), argument(node, 'last', variables)]
  const sizes = asked.filter((size) => typeof size === 'number' && size > 0) as number[]
  return sizes.length === 0 ? defaultPage : Math.min(maxPage, Math.max(...sizes))
}

function argument(node: FieldNode, name: string, variables: Variables): unknown {
  const value = node.arguments?.find((one) => one.name.value === name)?.value
  if (value?.kind === Kind.VARIABLE) return variables[value.name.value]
  return value?.kind === Kind.INT ? Number(value.value) : undefined
}

/**
 * How deep a document nests and how many aliases it has (spec §8), fragments counted where they are spread. It runs before
 * validation, whose own work grows with the square of what is refused here. Introspection is exempt: its tools nest deep.
 */
import {
  Kind,
  type DocumentNode,
  type FragmentDefinitionNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql'

const maxDepth = 8
const maxAliases = 30
/** Fields and spreads of one operation, introspection included. */
const maxSelections = 1_000

/** Why the document is refused, in one sentence; null when it is not. */
export function shapeRefusal(document: DocumentNode): string | null {
  const fragments = fragmentsOf(document)
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION && definition.kind !== Kind.FRAGMENT_DEFINITION) continue
    const refusal = refusalOf(definition, fragments)
    if (refusal !== null) return refusal
  }
  return null
}

export function fragmentsOf(document: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode> {
  return new Map(
    document.definitions.flatMap((one) => (one.kind === Kind.FRAGMENT_DEFINITION ? [[one.name.value, one]] : [])),
  )
}

function refusalOf(
  definition: OperationDefinitionNode | FragmentDefinitionNode,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
): string | null {
  let [aliases, repeats, selections] = [0, 0, 0]

  /** `inside` are the fragments that are open, so that a cycle ends; validation tells of it. */
  function walk({ selections: nodes }: SelectionSetNode, depth: number, inside: readonly string[]): string | null {
    const names = new Set<string>()
    for (const node of nodes) {
      selections += 1
      if (node.kind === Kind.FIELD) repeats += names.size === names.add((node.alias ?? node.name).value).size ? 1 : 0
      if (repeats > maxAliases) return 'The operation asks for the same fields too often.'
      if (selections > maxSelections) return `The operation has more than ${maxSelections} fields.`
      const refusal = visit(node, depth, inside)
      if (refusal !== null) return refusal
    }
    return null
  }

  function visit(
    node: SelectionSetNode['selections'][number],
    depth: number,
    inside: readonly string[],
  ): string | null {
    if (node.kind === Kind.INLINE_FRAGMENT) return walk(node.selectionSet, depth, inside)
    if (node.kind === Kind.FRAGMENT_SPREAD) {
      const name = node.name.value
      const fragment = inside.includes(name) ? undefined : fragments.get(name)
      return fragment === undefined ? null : walk(fragment.selectionSet, depth, [...inside, name])
    }
    if (node.alias !== undefined) aliases += 1
    if (aliases > maxAliases) return `The operation has more than ${maxAliases} aliases.`
    const isExempt = node.name.value === '__schema' || node.name.value === '__type'
    if (!isExempt && depth > maxDepth) return `The operation nests deeper than ${maxDepth} fields.`
    if (node.selectionSet === undefined) return null
    return walk(node.selectionSet, isExempt ? -Infinity : depth + 1, inside)
  }

  // How deep a fragment lies is known where it is spread; by itself it is only bounded.
  return walk(definition.selectionSet, definition.kind === Kind.OPERATION_DEFINITION ? 1 : -Infinity, [])
}

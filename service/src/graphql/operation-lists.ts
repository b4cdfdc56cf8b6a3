/** Which operations only list, so that a database a few seconds behind may answer them. */
import { Kind, type DocumentNode, type OperationDefinitionNode, type SelectionSetNode } from 'graphql'
import { fragmentsOf } from './operation-shape.ts'

const lists = new Set(['products', 'transfers', '__typename', '__schema', '__type'])

/** True when no field of Query is asked for but lists. The document is valid, so that its fragments have no cycle. */
export function isListing(document: DocumentNode, { operation, selectionSet }: OperationDefinitionNode): boolean {
  const fragments = fragmentsOf(document)
  const onlyLists = ({ selections }: SelectionSetNode): boolean =>
    selections.every((node) => {
      if (node.kind === Kind.FIELD) return lists.has(node.name.value)
      if (node.kind === Kind.INLINE_FRAGMENT) return onlyLists(node.selectionSet)
      const fragment = fragments.get(node.name.value)
      return fragment !== undefined && onlyLists(fragment.selectionSet)
    })
  return operation === 'query' && onlyLists(selectionSet)
}

/** Settings of the GraphQL host (spec §4.9). */
import { choice } from './kinds.ts'

export const graphqlSettings = {
  GRAPHQL_INTROSPECTION: choice(
    ['on', 'off'],
    'off: GraphQL does not describe its schema; the playground then completes nothing.',
  ),
} as const

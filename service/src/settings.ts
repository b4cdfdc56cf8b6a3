/**
 * Every setting of the service, once: name, meaning, default, how its text is read. `config.ts` reads the environment by this
 * table; `--help` and the handbook print it in this order.
 */
import { agentSettings } from './settings/agents.ts'
import { chainSettings } from './settings/chain.ts'
import { gatewaySettings } from './settings/gateway.ts'
import { graphqlSettings } from './settings/graphql.ts'
import { hostSettings } from './settings/hosts.ts'
import { tapSettings } from './settings/tap.ts'

export const settings = {
  ...hostSettings,
  ...chainSettings,
  ...tapSettings,
  ...graphqlSettings,
  ...gatewaySettings,
  ...agentSettings,
} as const

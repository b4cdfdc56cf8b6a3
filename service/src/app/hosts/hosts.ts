/** Builds each host of the service (spec §1) from the components, once all listen, so that links can name every port. */
import type { HostName } from '../../discovery/instance.ts'
import type { RequestListener } from 'node:http'
import { discoveryDocuments } from '../../discovery/documents.ts'
import type { Config } from '../config/config.ts'
import { clientKeys } from '../../http/client-ip.ts'
import type { OnUpgrade } from '../../http/listener.ts'
import type { Log } from '../../lib/log.ts'
import type { Components } from '../components.ts'
import { openAgentInterfaces } from './agents.ts'
import { openGatewayHost } from './gateway.ts'
import { openGraphql } from './graphql.ts'
import type { Limits } from '../limits.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { docsPages } from '../../hosts/verification/routes/docs.ts'
import { verificationListener } from '../../hosts/verification/host.ts'

export type OpenHost = Readonly<{
  onRequest: RequestListener
  onUpgrade?: OnUpgrade
  /** Ends connections that would keep the listener from closing. */
  stop?: () => void
  /** Runs after the last answer. */
  close?: () => Promise<void>
}>

type Opening = Readonly<{
  config: Config
  components: Components
  urls: Readonly<Record<HostName, string>>
  limits: Limits
  metrics: Metrics | undefined
  log: Log
}>

export const hosts: Readonly<Record<HostName, (opening: Opening) => OpenHost | Promise<OpenHost>>> = {
  verification: ({ config, components, urls, limits, log }) => {
    const { limits: most, pages } = config
    const { mcp, documents, close, ...agents } = openAgentInterfaces({ config, components, urls, log })
    const limiter = limits.limiterOf(most.asset, { scope: 'asset' })
    const agentLimiter = limits.limiterOf(most.mcp, { scope: 'agents' })
    const discovery = discoveryDocuments({
      urls,
      operator: components.issuerName,
      contract: components.contract,
      rpcUrl: pages.publicRpcUrl ?? 'https://sepolia.base.org',
      exampleTokenId: components.pages.examples[4] ?? 1n,
      docs: docsPages(),
      securityContact: config.agents.securityContact,
      startedAt: new Date(),
    })
    return {
      close,
      onRequest: verificationListener({
        ...components,
        baseUrl: urls.verification,
        gatewayUrl: urls.gateway,
        graphqlUrl: urls.graphql,
        discovery: new Map([...discovery, ...documents]),
        limiter,
        tapLimiter: limits.limiterOf(most.tap, { scope: 'tap', name: 'taps' }),
        agents: {
          ...agents,
          limiter,
          a2aLimiter: agentLimiter,
          mcp: { ...mcp, limiter: agentLimiter, otherLimiter: limiter },
        },
        clientKey: clientKeys(most.trustedProxies),
        log,
      }),
    }
  },
  gateway: ({ config: { limits: most, gateway, chain }, components, urls, limits, metrics, log }) =>
    openGatewayHost({
      metrics,
      components,
      options: gateway,
      rpcUrl: chain.rpcUrls[0] ?? '',
      urls,
      limiter: limits.limiterOf(most.gateway, { scope: 'gateway' }),
      clientKey: clientKeys(most.trustedProxies),
      log,
    }),
  graphql: ({ config: { limits: most, graphql }, components, limits, metrics, log }) =>
    openGraphql({
      metrics,
      components,
      introspection: graphql.introspection,
      limits,
      limiter: limits.limiterOf(most.graphql, { scope: 'graphql' }),
      clientKey: clientKeys(most.trustedProxies),
      log,
    }),
}

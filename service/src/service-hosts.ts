/** The hosts of the service (spec §1): how each is made of the parts. A host is opened once all listen, so that links can name every port. */
import type { RequestListener } from 'node:http'
import { discoveryDocuments } from './agents/discovery.ts'
import type { Config } from './config.ts'
import { clientKeys } from './http/client-key.ts'
import type { OnUpgrade } from './http/server.ts'
import type { Log } from './log.ts'
import type { Parts } from './parts.ts'
import { agentDoors } from './service-agents.ts'
import { openGatewayHost } from './service-gateway.ts'
import { openGraphql } from './service-graphql.ts'
import type { Limits } from './service-limits.ts'
import type { Metrics } from './service-metrics.ts'
import { docsPages } from './verification/docs-routes.ts'
import { verificationListener } from './verification/host.ts'

export type HostName = 'verification' | 'gateway' | 'graphql'

export type OpenHost = Readonly<{
  onRequest: RequestListener
  onUpgrade?: OnUpgrade
  /** Ends what would keep the listener from closing. */
  stop?: () => void
  /** After the last answer. */
  close?: () => Promise<void>
}>

type Opening = Readonly<{
  config: Config
  parts: Parts
  urls: Readonly<Record<HostName, string>>
  limits: Limits
  metrics: Metrics | undefined
  log: Log
}>

export const hosts: Readonly<Record<HostName, (opening: Opening) => OpenHost | Promise<OpenHost>>> = {
  verification: ({ config, parts, urls, limits, log }) => {
    const { limits: most, pages } = config
    const { mcp, documents, close, ...agents } = agentDoors({ config, parts, urls, log })
    const limiter = limits.limiterOf(most.asset, { scope: 'asset' })
    const agentLimiter = limits.limiterOf(most.mcp, { scope: 'agents' })
    const discovery = discoveryDocuments({
      urls,
      operator: parts.issuerName,
      contract: parts.contract,
      rpcUrl: pages.publicRpcUrl ?? 'https://sepolia.base.org',
      exampleTokenId: parts.pages.examples[4] ?? 1n,
      docs: docsPages(),
      securityContact: config.agents.securityContact,
      startedAt: new Date(),
    })
    return {
      close,
      onRequest: verificationListener({
        ...parts,
        baseUrl: urls.verification,
        gatewayUrl: urls.gateway,
        graphqlUrl: urls.graphql,
        discovery: new Map([...discovery, ...documents]),
        limiter,
        tapLimiter: limits.limiterOf(most.tap, { scope: 'tap', name: 'taps' }),
        doors: {
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
  gateway: ({ config: { limits: most, gateway, chain }, parts, urls, limits, metrics, log }) =>
    openGatewayHost({
      metrics,
      parts,
      options: gateway,
      rpcUrl: chain.rpcUrls[0] ?? '',
      urls,
      limiter: limits.limiterOf(most.gateway, { scope: 'gateway' }),
      clientKey: clientKeys(most.trustedProxies),
      log,
    }),
  graphql: ({ config: { limits: most, graphql }, parts, limits, metrics, log }) =>
    openGraphql({
      metrics,
      parts,
      introspection: graphql.introspection,
      limits,
      limiter: limits.limiterOf(most.graphql, { scope: 'graphql' }),
      clientKey: clientKeys(most.trustedProxies),
      log,
    }),
}

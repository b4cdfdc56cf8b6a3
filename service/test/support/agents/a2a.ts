/** The A2A agent with its card on a server of its own, and a client of each binding. */
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import type { RequestListener } from 'node:http'
import { serve } from '../http.ts'
import { createA2aAgent } from '../../../src/agents/a2a/agent.ts'
import { createTaskStore } from '../../../src/agents/a2a/tasks.ts'
import type { Tools } from '../../../src/agents/tools/tools.ts'
import type { ClientKey } from '../../../src/http/client-ip.ts'
import type { RateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { createLog } from '../../../src/lib/log.ts'
import { a2aRoutes } from '../../../src/hosts/verification/routes/a2a.ts'
import { createEventStreams } from '../../../src/agents/a2a/streams.ts'
import { agentRoutes, type AgentRoutes } from '../../../src/hosts/verification/routes/agents.ts'
import { createRequestHelpers, rawPath, type Env } from '../../../src/hosts/verification/request.ts'

export type Json = Readonly<Record<string, any>> // oxlint-disable-line typescript/no-explicit-any

const version = { 'A2A-Version': '1.0' }

/** `subscriptionMs`: how long a subscription waits. */
export async function startA2a({
  tools,
  limiter,
  maxStreams,
  maxPerClient,
  subscriptionMs = 300,
  issuer,
  clientKey = (peer) => peer ?? '',
}: {
  tools: Tools
  issuer?: AgentRoutes['issuer']
  limiter?: RateLimiter
  maxStreams?: number
  maxPerClient?: number
  subscriptionMs?: number
  clientKey?: ClientKey
}) {
  let listener: RequestListener = () => {}
  const { url, close } = await serve((request, response) => listener(request, response))
  const app = new Hono<Env>({ getPath: rawPath, strict: true })
  const helpers = createRequestHelpers({ clientKey, log: createLog(() => {}) })
  a2aRoutes(app, helpers, {
    a2a: createA2aAgent({ tools, tasks: createTaskStore(), subscriptionMs }),
    a2aLimiter: limiter,
    a2aStreams: createEventStreams({
      ...(maxStreams !== undefined && { maxStreams }),
      ...(maxPerClient !== undefined && { maxPerClient }),
    }),
  })
  const ownAgent = ownAgentAt(url)
  agentRoutes(app, helpers, { ownAgent, issuer, agents: async () => null, reputations: async () => null })
  const router = getRequestListener((request, env) => app.fetch(request, env))
  listener = (request, response) => void router(request, response)

  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(url + path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...version, ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  return {
    url,
    post,
    get: (path: string, headers: Record<string, string> = {}) =>
      fetch(url + path, { headers: { ...version, ...headers } }),
    /** The answer's `result` or `error`, with its HTTP status. */
    async rpc(method: string, params: object, headers?: Record<string, string>) {
      const response = await post('/a2a', { jsonrpc: '2.0', id: 'x', method, params }, headers)
      return { status: response.status, ...((await response.json()) as Json) } as Json
    },
    async rest(method: 'GET' | 'POST' | 'DELETE', path: string, body?: object) {
      const response = await fetch(`${url}/a2a/v1${path}`, {
        method,
        headers: { ...version, ...(body && { 'Content-Type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      })
      return { status: response.status, ...((await response.json()) as Json) } as Json
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

export function ownAgentAt(baseUrl: string) {
  return {
    baseUrl,
    gatewayUrl: null,
    name: 'Asset verification by Example',
    operator: 'Example',
    description: 'Verifies products with an NFC tag.',
    programVersion: '0.1.0',
    agentId: 0n,
    identity: '0x5fbdb2315678afecb367f032d93f642f64180aa3',
  } as const
}

let messages = 0

/** A message of a client; a text or data. */
export function said(content: string | object, ids: { taskId?: string; contextId?: string } = {}): object {
  const part = typeof content === 'string' ? { text: content } : { data: content }
  return { message: { messageId: `m${(messages += 1)}`, role: 'ROLE_USER', parts: [part], ...ids } }
}

/** The events of a stream in order. */
export async function eventsOf(response: Response): Promise<Json[]> {
  const text = await response.text()
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data) as Json)
}

/** Which member each event has, a status with its state. */
export function shapesOf(events: readonly Json[]): string[] {
  return events.map(({ task, statusUpdate, artifactUpdate }) =>
    task
      ? `task ${task.status.state}`
      : statusUpdate
        ? statusUpdate.status.state
        : `artifact ${artifactUpdate.artifact.name}`,
  )
}

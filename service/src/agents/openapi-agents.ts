/** Operations for software agents (spec §4.2, §4.3, §9): MCP, A2A, and lookups in the agents' registries (ERC-8004). */
import { z } from 'zod'
import { documentAnswers } from './openapi-discovery.ts'
import { budget, failed, ifNoneMatch, open, type Answer, type Operation, type Parameter } from './openapi-operation.ts'
import {
  a2aErrorSchema,
  agentErrorSchema,
  agentIdParameter,
  agentSchema,
  reputationSchema,
  rpcAnswerSchema,
  rpcRequestSchema,
  taskSchema,
} from './schemas/rest-agents.ts'

const documents = [
  ['/.well-known/mcp.json', 'readMcpDescriptor', 'application/json', 'MCP server descriptor (registry schema)'],
  ['/mcp/server-card', 'readMcpCard', 'application/mcp-server-card+json', 'MCP server card (experimental)'],
  ['/.well-known/agent-card.json', 'readAgentCard', 'application/json', 'A2A agent card'],
  ['/.well-known/agent-registration.json', 'readRegistration', 'application/json', 'Own registration file (ERC-8004)'],
  ['/api/agent', 'readOwnAgent', 'application/json', 'Own registration file (ERC-8004), as the registry links it'],
] as const

const lookupAnswers = (found: Answer): Readonly<Record<number, Answer>> => {
  const error = (description: string, more: readonly ['Retry-After'] | readonly [] = []) =>
    failed(description, agentErrorSchema, { headers: [...budget, ...more] })
  return {
    200: { ...found, headers: ['Cache-Control', ...open, ...budget] },
    400: error('INVALID_AGENT_ID or INVALID_ARGUMENT: see the message.'),
    404: error('AGENT_NOT_FOUND: the registry knows no such agent.'),
    429: error('RATE_LIMITED: too many requests of this client.', ['Retry-After']),
    500: error('INTERNAL: the request failed unexpectedly.'),
    502: error('CHAIN_UNAVAILABLE: the registries could not be read.'),
  }
}

const agentIdInPath: Parameter = { name: 'agentId', in: 'path', required: true, schema: agentIdParameter }

const rpc = (description: string, more: Pick<Answer, 'sometimes'> = {}): Answer => ({
  description,
  headers: ['Cache-Control'],
  ...more,
  content: { 'application/json': rpcAnswerSchema },
})
const a2a = (description: string, schema: z.ZodType = a2aErrorSchema): Answer => ({
  description,
  headers: ['Cache-Control', ...open],
  content: { 'application/json': schema, 'application/a2a+json': schema },
})

export const agentOperations: readonly Operation[] = [
  ...documents.map(([path, id, type, summary]): Operation => ({
    method: 'get',
    path,
    id,
    tag: 'agents',
    summary,
    parameters: [ifNoneMatch],
    answers: documentAnswers(type),
  })),
  {
    method: 'post',
    path: '/mcp',
    id: 'callMcp',
    tag: 'agents',
    summary: 'MCP server over Streamable HTTP',
    description:
      'Three read-only tools: verify_asset, get_lifecycle_history, check_flagged. Stateless; 2026-07-28 and the handshake revisions back to 2025-03-26.',
    body: { schema: rpcRequestSchema, required: true },
    answers: {
      200: rpc('The result, or an error of JSON-RPC.', { sometimes: [...budget] }),
      202: { description: 'A notification was taken.', headers: ['Cache-Control'] },
      400: rpc('Not JSON, no JSON-RPC, or a version that is not spoken here.'),
      403: rpc('The Host or the Origin is not one that may ask.'),
      404: rpc('There is no such method.'),
      406: rpc('Accept leaves out JSON or the event stream.'),
      413: rpc('The body has more than 64 KiB.'),
      415: rpc('The body is not JSON.'),
      429: rpc('Too many calls of this client.', { sometimes: ['Retry-After', ...budget] }),
    },
  },
  {
    method: 'post',
    path: '/a2a',
    id: 'callA2a',
    tag: 'agents',
    summary: 'A2A 1.0 agent over JSON-RPC',
    description:
      'SendMessage, SendStreamingMessage, GetTask, ListTasks, CancelTask, SubscribeToTask. Errors are in the body of a 200.',
    body: { schema: rpcRequestSchema, required: true },
    answers: {
      200: {
        description: 'The result, an error of JSON-RPC, or a stream of events.',
        sometimes: ['Cache-Control', ...budget],
        content: { 'application/json': rpcAnswerSchema },
      },
      408: rpc('The body did not arrive in time.'),
      413: rpc('The body is too large.'),
      429: rpc('Too many requests of this client.', { sometimes: ['Retry-After', ...budget] }),
      500: rpc('The request failed unexpectedly.'),
    },
  },
  {
    method: 'post',
    path: '/a2a/v1/message:send',
    id: 'sendMessage',
    tag: 'agents',
    summary: 'A2A 1.0 agent over HTTP+JSON',
    description: 'Tasks, cancellation and streams are below /a2a/v1 as A2A 1.0 has them.',
    parameters: [{ name: 'A2A-Version', in: 'header', schema: z.string().max(20), description: '1.0' }],
    body: {
      schema: z.looseObject({}).meta({ id: 'A2aMessage', description: 'SendMessageRequest of A2A 1.0.' }),
      required: true,
    },
    answers: {
      200: a2a('The task, completed, failed, rejected or asking for input.', taskSchema),
      400: a2a('The message, its version or its parts are not such as are taken here.'),
      404: a2a('There is no such task.'),
      408: a2a('The body did not arrive in time.'),
      413: a2a('The body is too large.'),
      429: a2a('Too many requests of this client.'),
      500: a2a('The request failed unexpectedly.'),
    },
  },
  {
    method: 'get',
    path: '/api/agents/{agentId}',
    id: 'readAgent',
    tag: 'agents',
    summary: 'Who an agent is (ERC-8004)',
    parameters: [agentIdInPath],
    answers: lookupAnswers({ description: 'The agent.', content: { 'application/json': agentSchema } }),
  },
  {
    method: 'get',
    path: '/api/agents/{agentId}/reputation',
    id: 'readReputation',
    tag: 'agents',
    summary: 'What others say of an agent (ERC-8004)',
    parameters: [
      agentIdInPath,
      { name: 'tag1', in: 'query', schema: z.string().max(100), description: 'Tag; repeat it for up to 50.' },
      { name: 'tag2', in: 'query', schema: z.string().max(100), description: 'Narrows each tag1.' },
      {
        name: 'reviewers',
        in: 'query',
        schema: z.string(),
        description: 'Up to 200 addresses with commas between them.',
      },
    ],
    answers: lookupAnswers({ description: 'The summaries.', content: { 'application/json': reputationSchema } }),
  },
]

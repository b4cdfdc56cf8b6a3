/** The operations of A2A 1.0 by their names (§5.3), and what both bindings need around them: versions, and those that are not offered. */
import type { A2aAgent, TaskStream } from './a2a-agent.ts'
import { isFault, type Fault } from './a2a-errors.ts'
import type { Json } from './a2a-wire.ts'

/** A result to be written as JSON, or a stream of events. */
export type Done = { readonly result: object } | { readonly stream: TaskStream }

type Operation = (agent: A2aAgent, params: Json) => Done | Fault | Promise<Done | Fault>

const noPush: Operation = () => ({
  fault: 'PUSH_NOTIFICATION_NOT_SUPPORTED',
  message: 'This agent sends no push notifications.',
})

export const operations = {
  SendMessage: async (agent, params) => json(await agent.send(params)),
  SendStreamingMessage: (agent, params) => events(agent.stream(params)),
  GetTask: (agent, params) => json(agent.get(params)),
  ListTasks: (agent, params) => json(agent.list(params)),
  CancelTask: (agent, params) => json(agent.cancel(params)),
  SubscribeToTask: (agent, params) => events(agent.subscribe(params)),
  CreateTaskPushNotificationConfig: noPush,
  GetTaskPushNotificationConfig: noPush,
  ListTaskPushNotificationConfigs: noPush,
  DeleteTaskPushNotificationConfig: noPush,
  GetExtendedAgentCard: () => ({
    fault: 'UNSUPPORTED_OPERATION',
    message: 'This agent has no other card than the public one.',
  }),
} satisfies Readonly<Record<string, Operation>>

export type OperationName = keyof typeof operations

/** `version` as in `A2A-Version`: 1.0, whatever its patch. An empty one means 0.3 (§3.6.2). */
export function versionFault(version: string | undefined): Fault | null {
  if (version !== undefined && /^1\.0(?:\.\d{1,5})?$/.test(version.trim())) return null
  return { fault: 'VERSION_NOT_SUPPORTED', message: 'This agent speaks A2A 1.0: send the header A2A-Version: 1.0.' }
}

function json(outcome: object): Done | Fault {
  return isFault(outcome) ? outcome : { result: outcome }
}

function events(outcome: TaskStream | Fault): Done | Fault {
  return typeof outcome === 'function' ? { stream: outcome } : outcome
}

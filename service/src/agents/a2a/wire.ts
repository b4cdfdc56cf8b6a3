/** The data of A2A 1.0 (§4) that this agent uses, and the parsers of its requests. */
import { isObject, type JsonObject } from '../../lib/json.ts'
import { invalid, isFault, noPushNotifications, type Fault } from './errors.ts'

export const taskStates = [
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_REJECTED',
] as const
export type TaskState = (typeof taskStates)[number]

export type Part = { readonly mediaType?: string } & ({ readonly text: string } | { readonly data: unknown })
export type Message = {
  readonly messageId: string
  readonly contextId: string
  readonly taskId: string
  readonly role: 'ROLE_USER' | 'ROLE_AGENT'
  readonly parts: readonly Part[]
}
export type TaskStatus = { readonly state: TaskState; readonly message?: Message; readonly timestamp: string }
export type Artifact = { readonly artifactId: string; readonly name: string; readonly parts: readonly Part[] }
export type Task = {
  readonly id: string
  readonly contextId: string
  readonly status: TaskStatus
  readonly artifacts?: readonly Artifact[]
  readonly history?: readonly Message[]
}

type Update = { readonly taskId: string; readonly contextId: string }
/** One event of a stream (§3.2.3). */
export type StreamEvent =
  | { readonly task: Task }
  | { readonly statusUpdate: Update & { readonly status: TaskStatus } }
  | {
      readonly artifactUpdate: Update & {
        readonly artifact: Artifact
        readonly append: false
        readonly lastChunk: true
      }
    }

/** A message of a client before it belongs to a task. An empty id is an absent one (proto3). */
type ClientMessage = Pick<Message, 'messageId' | 'contextId' | 'taskId' | 'parts'>
export type SendRequest = {
  readonly message: ClientMessage
  readonly returnImmediately: boolean
  readonly historyLength: number | undefined
}

/** Deeper than any request of the protocol, and far from a stack overflow. */
const maxDepth = 20

/** Returns whether a value is nested no deeper than a request may be. */
export function isShallow(value: unknown, levels = maxDepth): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every((inner) => isShallow(inner, levels - 1))
}

/**
 * Converts the names of the protocol's own objects to camelCase, and leaves out members that are null (ProtoJSON). Values of `data` and
 * `metadata` belong to the client and stay.
 */
export function camelCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelCased)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => {
      if (name === 'data' || name === 'metadata') return [[name, inner]]
      if (inner === null) return []
      return [[name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()), camelCased(inner)]]
    }),
  )
}

/** Parses a `SendMessageRequest` (§3.2.1). */
export function parseSend(params: JsonObject): SendRequest | Fault {
  const { message, configuration = {} } = params
  if (!isObject(configuration)) return invalid('configuration', 'must be an object.')
  if (isObject(configuration['taskPushNotificationConfig'])) return noPushNotifications
  const historyLength = parseCount(configuration['historyLength'], 'configuration.historyLength')
  if (typeof historyLength === 'object') return historyLength
  const returnImmediately = configuration['returnImmediately'] ?? false
  if (typeof returnImmediately !== 'boolean') return invalid('configuration.returnImmediately', 'must be a boolean.')
  const sent = parseMessage(message)
  return isFault(sent) ? sent : { message: sent, returnImmediately, historyLength }
}

/** Parses a count; undefined if there is none. */
export function parseCount(value: unknown, field: string, from = 0, to = 2 ** 31 - 1): number | undefined | Fault {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to) return value
  return invalid(field, `must be an integer from ${from} to ${to}.`)
}

/** Parses a text of at most 256 characters; an absent one is empty. */
export function parseText(value: unknown, field: string): string | Fault {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string' && value.length <= 256) return value
  return invalid(field, 'must be a text of at most 256 characters.')
}

const maxParts = 20

function parseMessage(value: unknown): ClientMessage | Fault {
  if (!isObject(value)) return invalid('message', 'is required.')
  const { role, parts } = value
  const texts: string[] = []
  for (const name of ['messageId', 'contextId', 'taskId']) {
    const text = parseText(value[name], `message.${name}`)
    if (typeof text !== 'string') return text
    texts.push(text)
  }
  const [messageId = '', contextId = '', taskId = ''] = texts
  if (messageId === '') return invalid('message.messageId', 'is required.')
  if (role !== 'ROLE_USER' && role !== 1) return invalid('message.role', 'must be ROLE_USER.')
  if (!Array.isArray(parts) || parts.length === 0 || parts.length > maxParts)
    return invalid('message.parts', `must be a list of 1 to ${maxParts} parts.`)
  const parsed: Part[] = []
  for (const [index, one] of (parts as unknown[]).entries()) {
    const part = parsePart(one, `message.parts[${index}]`)
    if (isFault(part)) return part
    parsed.push(part)
  }
  return { messageId, contextId, taskId, parts: parsed }
}

const mediaTypes = { text: 'text/plain', data: 'application/json' } as const

/** Parses one of `text`, `data`, `raw` and `url`; the latter two are files, which are not supported. */
function parsePart(value: unknown, field: string): Part | Fault {
  if (!isObject(value)) return invalid(field, 'must be an object.')
  const kinds = (['text', 'data', 'raw', 'url'] as const).filter((kind) => value[kind] !== undefined)
  const [kind] = kinds
  if (kind === undefined || kinds.length > 1) return invalid(field, 'must have exactly one of text, data, raw and url.')
  const mediaType = value['mediaType'] ?? ''
  const wanted = kind === 'text' || kind === 'data' ? mediaTypes[kind] : null
  const named = typeof mediaType === 'string' ? (mediaType.split(';')[0] ?? '').trim().toLowerCase() : null
  if (wanted === null || (named !== '' && named !== wanted))
    return {
      fault: 'CONTENT_TYPE_NOT_SUPPORTED',
      message: `${field}: this agent takes text/plain and application/json.`,
    }
  if (kind === 'data') return { data: value['data'], mediaType: wanted }
  const { text } = value
  return typeof text === 'string' ? { text, mediaType: wanted } : invalid(`${field}.text`, 'must be a text.')
}

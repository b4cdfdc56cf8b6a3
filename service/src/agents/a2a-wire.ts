/** The data of A2A 1.0 (§4) as far as this agent uses it, and how a request is read into it. */
import { invalid, isFault, type Fault } from './a2a-errors.ts'

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
type Sent = Pick<Message, 'messageId' | 'contextId' | 'taskId' | 'parts'>
export type SendRequest = {
  readonly message: Sent
  readonly returnImmediately: boolean
  readonly historyLength: number | undefined
}

export type Json = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Deeper than any request of the protocol, and far from what would overflow a stack. */
const deepest = 20

/** Is the value nested no deeper than a request may be? */
export function isShallow(value: unknown, levels = deepest): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every((inner) => isShallow(inner, levels - 1))
}

/** Names in the protocol's own objects as `camelCase`, however they were sent; what a client put into `data` and `metadata` stays. */
export function camelCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelCased)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      name === 'data' || name === 'metadata' ? inner : camelCased(inner),
    ]),
  )
}

/** `SendMessageRequest` (§3.2.1). */
export function readSend(params: Json): SendRequest | Fault {
  const { message, configuration = {} } = params
  if (!isObject(configuration)) return invalid('configuration', 'must be an object.')
  if (isObject(configuration['taskPushNotificationConfig']))
    return { fault: 'PUSH_NOTIFICATION_NOT_SUPPORTED', message: 'This agent sends no push notifications.' }
  const historyLength = readLength(configuration['historyLength'], 'configuration.historyLength')
  if (typeof historyLength === 'object') return historyLength
  const returnImmediately = configuration['returnImmediately'] ?? false
  if (typeof returnImmediately !== 'boolean') return invalid('configuration.returnImmediately', 'must be a boolean.')
  const sent = readMessage(message)
  return isFault(sent) ? sent : { message: sent, returnImmediately, historyLength }
}

/** A count, where one was sent. */
export function readLength(value: unknown, field: string, from = 0, to = 2 ** 31 - 1): number | undefined | Fault {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to) return value
  return invalid(field, `must be an integer from ${from} to ${to}.`)
}

/** A text of at most 256 characters; absent is empty. */
export function readText(value: unknown, field: string): string | Fault {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string' && value.length <= 256) return value
  return invalid(field, 'must be a text of at most 256 characters.')
}

const mostParts = 20

function readMessage(value: unknown): Sent | Fault {
  if (!isObject(value)) return invalid('message', 'is required.')
  const { role, parts } = value
  const texts: string[] = []
  for (const name of ['messageId', 'contextId', 'taskId']) {
    const text = readText(value[name], `message.${name}`)
    if (typeof text !== 'string') return text
    texts.push(text)
  }
  const [messageId = '', contextId = '', taskId = ''] = texts
  if (messageId === '') return invalid('message.messageId', 'is required.')
  if (role !== 'ROLE_USER' && role !== 1) return invalid('message.role', 'must be ROLE_USER.')
  if (!Array.isArray(parts) || parts.length === 0 || parts.length > mostParts)
    return invalid('message.parts', `must be a list of 1 to ${mostParts} parts.`)
  const read: Part[] = []
  for (const [index, one] of (parts as unknown[]).entries()) {
    const part = readPart(one, `message.parts[${index}]`)
    if (isFault(part)) return part
    read.push(part)
  }
  return { messageId, contextId, taskId, parts: read }
}

const mediaTypes = { text: 'text/plain', data: 'application/json' } as const

/** One of `text`, `data`, `raw` and `url`; the latter two are files, which nobody here opens. */
function readPart(value: unknown, field: string): Part | Fault {
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

/** Every error of the A2A agent on both bindings: the same reason, each in its own encoding (A2A 1.0 §5.4, §9.5, §11.6). */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { scriptedTools } from '../../support/agents/tools.ts'
import { said, startA2a, type Json } from '../../support/agents/a2a.ts'

type Call = {
  rpc: [method: string, params: object]
  rest: [method: 'GET' | 'POST' | 'DELETE', path: string, body?: object]
}

const errors = {
  TASK_NOT_FOUND: [-32001, 404, 'NOT_FOUND'],
  TASK_NOT_CANCELABLE: [-32002, 400, 'FAILED_PRECONDITION'],
  PUSH_NOTIFICATION_NOT_SUPPORTED: [-32003, 400, 'FAILED_PRECONDITION'],
  UNSUPPORTED_OPERATION: [-32004, 400, 'FAILED_PRECONDITION'],
  CONTENT_TYPE_NOT_SUPPORTED: [-32005, 400, 'INVALID_ARGUMENT'],
  INVALID_PARAMS: [-32602, 400, 'INVALID_ARGUMENT'],
} as const

const unknown = '00000000-0000-4000-8000-000000000000'
const user = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: '42' }] }
const push = { url: 'https://client.example/hook' }
const pushPath = (taskId: string) => `/tasks/${taskId}/pushNotificationConfigs`

const sent = (message: object, configuration?: object): Call => {
  const params = { message, ...(configuration && { configuration }) }
  return { rpc: ['SendMessage', params], rest: ['POST', '/message:send', params] }
}
const part = (one: object | null) => sent({ ...user, parts: [one] })
const got = (rpc: Call['rpc'], path: string): Call => ({ rpc, rest: ['GET', path] })
const posted = (rpc: Call['rpc'], path: string, body?: object): Call => ({
  rpc,
  rest: ['POST', path, ...(body ? [body] : [])] as Call['rest'],
})

const a2a = await startA2a(scriptedTools())
after(() => a2a.close())
const ended = (await a2a.rpc('SendMessage', said('42'))).result.task.id as string
const waiting = (await a2a.rpc('SendMessage', said('verify'))).result.task.id as string

describe('an error of the A2A agent', () => {
  const cases: Readonly<Record<keyof typeof errors, Readonly<Record<string, () => Call>>>> = {
    TASK_NOT_FOUND: {
      'an unknown task': () => got(['GetTask', { id: unknown }], `/tasks/${unknown}`),
      'an id that is no text in percent-encoding': () => got(['GetTask', { id: '%ff' }], '/tasks/%ff'),
      'a message to an unknown task': () => sent({ ...user, taskId: unknown }),
    },
    TASK_NOT_CANCELABLE: {
      'cancelling what has ended': () => posted(['CancelTask', { id: ended }], `/tasks/${ended}:cancel`),
    },
    PUSH_NOTIFICATION_NOT_SUPPORTED: {
      'setting a push notification': () =>
        posted(['CreateTaskPushNotificationConfig', { taskId: ended, ...push }], pushPath(ended), push),
      'getting a push notification': () =>
        got(['GetTaskPushNotificationConfig', { taskId: ended, id: 'a' }], `${pushPath(ended)}/a`),
      'listing push notifications': () => got(['ListTaskPushNotificationConfigs', { taskId: ended }], pushPath(ended)),
      'deleting a push notification': () => ({
        rpc: ['DeleteTaskPushNotificationConfig', { taskId: ended, id: 'a' }],
        rest: ['DELETE', `${pushPath(ended)}/a`],
      }),
      'a message that asks to be notified': () => sent(user, { taskPushNotificationConfig: push }),
    },
    UNSUPPORTED_OPERATION: {
      'a message to a task that has ended': () => sent({ ...user, taskId: ended }),
      'subscribing to what has ended': () => posted(['SubscribeToTask', { id: ended }], `/tasks/${ended}:subscribe`),
      'the extended card': () => got(['GetExtendedAgentCard', {}], '/extendedAgentCard'),
    },
    CONTENT_TYPE_NOT_SUPPORTED: {
      'a file': () => part({ raw: 'AAAA', mediaType: 'image/png' }),
      'a file by its address': () => part({ url: 'https://client.example/a.png' }),
      'text of another media type': () => part({ text: '42', mediaType: 'text/html' }),
      'a media type that is no text': () => part({ text: '42', mediaType: 1 }),
    },
    INVALID_PARAMS: {
      'a message without id': () => sent({ ...user, messageId: '' }),
      'a message of an agent': () => sent({ ...user, role: 'ROLE_AGENT' }),
      'a message without parts': () => sent({ ...user, parts: [] }),
      'a message of too many parts': () => sent({ ...user, parts: Array.from({ length: 21 }, () => ({ text: '42' })) }),
      'a part of the old form': () => part({ kind: 'file', file: {} }),
      'a part that is two': () => part({ text: '42', data: {} }),
      'a part that is no object': () => part(null),
      'a text that is a number': () => part({ text: 42 }),
      'a configuration that is a list': () => sent(user, []),
      'a configuration with a negative length': () => sent(user, { historyLength: -1 }),
      'a wait that is a text': () => sent(user, { returnImmediately: 'no' }),
      'no message': () => posted(['SendMessage', {}], '/message:send', {}),
      'a context unlike its task’s': () => sent({ ...user, taskId: waiting, contextId: 'another' }),
      'a negative length': () => got(['GetTask', { id: ended, historyLength: -1 }], `/tasks/${ended}?historyLength=-1`),
      'a page of no size': () => got(['ListTasks', { pageSize: 0 }], '/tasks?pageSize=0'),
      'a page too long': () => got(['ListTasks', { pageSize: 101 }], '/tasks?pageSize=101'),
      'a state that there is not': () => got(['ListTasks', { status: 'done' }], '/tasks?status=done'),
      'a list with a negative length': () => got(['ListTasks', { historyLength: -1 }], '/tasks?historyLength=-1'),
      'a context too long': () => {
        const contextId = 'x'.repeat(257)
        return got(['ListTasks', { contextId }], `/tasks?contextId=${contextId}`)
      },
      'artifacts that are neither': () => got(['ListTasks', { includeArtifacts: 'x' }], '/tasks?includeArtifacts=x'),
      'a time that is none': () => got(['ListTasks', { statusTimestampAfter: '5' }], '/tasks?statusTimestampAfter=5'),
      'a time without its zone': () => {
        const statusTimestampAfter = '2026-03-01T12:00:00'
        return got(['ListTasks', { statusTimestampAfter }], `/tasks?statusTimestampAfter=${statusTimestampAfter}`)
      },
      'a task with an id too long': () => got(['GetTask', { id: 'x'.repeat(257) }], `/tasks/${'x'.repeat(257)}`),
      'a page that is not ours': () => got(['ListTasks', { pageToken: 'x' }], '/tasks?pageToken=x'),
      'an id too long': () => sent({ ...user, contextId: 'x'.repeat(257) }),
    },
  }

  for (const [reason, calls] of Object.entries(cases))
    for (const [what, call] of Object.entries(calls))
      it(`says ${reason} to ${what}`, async () => {
        const [code, http, status] = errors[reason as keyof typeof errors]
        const { rpc, rest } = call()
        const byRpc = await a2a.rpc(...rpc)
        assert.deepEqual([byRpc.status, byRpc.id, byRpc.error.code], [200, 'x', code])
        const byRest = await a2a.rest(...rest)
        assert.equal(byRest.status, http)
        const { details, ...error } = byRest.error as Json
        assert.deepEqual(error, { code: http, status, message: byRpc.error.message })
        assert.deepEqual(details, byRpc.error.data)
        const [info, request] = details as Json[]
        assert.deepEqual(info, {
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason,
          domain: 'a2a-protocol.org',
        })
        const violations = request && [request['@type'], request.fieldViolations.length]
        const isBadRequest = reason === 'INVALID_PARAMS'
        assert.deepEqual(violations, isBadRequest ? ['type.googleapis.com/google.rpc.BadRequest', 1] : undefined)
      })
})

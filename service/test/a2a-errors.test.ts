/** Every error of the A2A agent on both bindings: same reason, each in its own form (A2A 1.0 §5.4, §9.5, §11.6). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { scriptedTools } from '../src/agents/_tools.ts'
import { said, startA2a, type Json } from './_a2a.ts'

type A2a = Awaited<ReturnType<typeof startA2a>>
type Call = {
  rpc: [method: string, params: object]
  rest: [method: 'GET' | 'POST' | 'DELETE', path: string, body?: object]
}

describe('an error of the A2A agent', () => {
  let a2a: A2a
  let ended: string
  let waiting: string
  before(async () => {
    a2a = await startA2a(scriptedTools())
    ended = (await a2a.rpc('SendMessage', said('42'))).result.task.id
    waiting = (await a2a.rpc('SendMessage', said('verify'))).result.task.id
  })
  after(() => a2a.close())

  const sent = (message: object, configuration?: object): Call => {
    const params = { message, ...(configuration && { configuration }) }
    return { rpc: ['SendMessage', params], rest: ['POST', '/message:send', params] }
  }
  const part = (one: object): Call => sent({ messageId: 'm', role: 'ROLE_USER', parts: [one] })
  const user = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: '42' }] }
  const push = { url: 'https://client.example/hook' }
  const unknown = '00000000-0000-4000-8000-000000000000'

  const cases: readonly (readonly [what: string, reason: string, code: number, http: number, call: () => Call])[] = [
    [
      'an unknown task',
      'TASK_NOT_FOUND',
      -32001,
      404,
      () => ({ rpc: ['GetTask', { id: unknown }], rest: ['GET', `/tasks/${unknown}`] }),
    ],
    ['a message to an unknown task', 'TASK_NOT_FOUND', -32001, 404, () => sent({ ...user, taskId: unknown })],
    [
      'cancelling what has ended',
      'TASK_NOT_CANCELABLE',
      -32002,
      400,
      () => ({ rpc: ['CancelTask', { id: ended }], rest: ['POST', `/tasks/${ended}:cancel`] }),
    ],
    [
      'setting a push notification',
      'PUSH_NOTIFICATION_NOT_SUPPORTED',
      -32003,
      400,
      () => ({
        rpc: ['CreateTaskPushNotificationConfig', { taskId: ended, ...push }],
        rest: ['POST', `/tasks/${ended}/pushNotificationConfigs`, push],
      }),
    ],
    [
      'getting a push notification',
      'PUSH_NOTIFICATION_NOT_SUPPORTED',
      -32003,
      400,
      () => ({
        rpc: ['GetTaskPushNotificationConfig', { taskId: ended, id: 'a' }],
        rest: ['GET', `/tasks/${ended}/pushNotificationConfigs/a`],
      }),
    ],
    [
      'listing push notifications',
      'PUSH_NOTIFICATION_NOT_SUPPORTED',
      -32003,
      400,
      () => ({
        rpc: ['ListTaskPushNotificationConfigs', { taskId: ended }],
        rest: ['GET', `/tasks/${ended}/pushNotificationConfigs`],
      }),
    ],
    [
      'deleting a push notification',
      'PUSH_NOTIFICATION_NOT_SUPPORTED',
      -32003,
      400,
      () => ({
        rpc: ['DeleteTaskPushNotificationConfig', { taskId: ended, id: 'a' }],
        rest: ['DELETE', `/tasks/${ended}/pushNotificationConfigs/a`],
      }),
    ],
    [
      'a message that asks to be notified',
      'PUSH_NOTIFICATION_NOT_SUPPORTED',
      -32003,
      400,
      () => sent(user, { taskPushNotificationConfig: push }),
    ],
    [
      'a message to a task that has ended',
      'UNSUPPORTED_OPERATION',
      -32004,
      400,
      () => sent({ ...user, taskId: ended }),
    ],
    [
      'subscribing to what has ended',
      'UNSUPPORTED_OPERATION',
      -32004,
      400,
      () => ({ rpc: ['SubscribeToTask', { id: ended }], rest: ['POST', `/tasks/${ended}:subscribe`] }),
    ],
    [
      'the extended card',
      'UNSUPPORTED_OPERATION',
      -32004,
      400,
      () => ({ rpc: ['GetExtendedAgentCard', {}], rest: ['GET', '/extendedAgentCard'] }),
    ],
    ['a file', 'CONTENT_TYPE_NOT_SUPPORTED', -32005, 400, () => part({ raw: 'AAAA', mediaType: 'image/png' })],
    [
      'a file by its address',
      'CONTENT_TYPE_NOT_SUPPORTED',
      -32005,
      400,
      () => part({ url: 'https://client.example/a.png' }),
    ],
    [
      'text of another media type',
      'CONTENT_TYPE_NOT_SUPPORTED',
      -32005,
      400,
      () => part({ text: '42', mediaType: 'text/html' }),
    ],
    ['a message without id', 'INVALID_PARAMS', -32602, 400, () => sent({ ...user, messageId: '' })],
    ['a message of an agent', 'INVALID_PARAMS', -32602, 400, () => sent({ ...user, role: 'ROLE_AGENT' })],
    ['a message without parts', 'INVALID_PARAMS', -32602, 400, () => sent({ ...user, parts: [] })],
    ['a part of the old form', 'INVALID_PARAMS', -32602, 400, () => part({ kind: 'file', file: {} })],
    ['a part that is two', 'INVALID_PARAMS', -32602, 400, () => part({ text: '42', data: {} })],
    [
      'no message',
      'INVALID_PARAMS',
      -32602,
      400,
      () => ({ rpc: ['SendMessage', {}], rest: ['POST', '/message:send', {}] }),
    ],
    [
      'a context unlike its task’s',
      'INVALID_PARAMS',
      -32602,
      400,
      () => sent({ ...user, taskId: waiting, contextId: 'another' }),
    ],
    [
      'a negative length',
      'INVALID_PARAMS',
      -32602,
      400,
      () => ({ rpc: ['GetTask', { id: ended, historyLength: -1 }], rest: ['GET', `/tasks/${ended}?historyLength=-1`] }),
    ],
    [
      'a page of no size',
      'INVALID_PARAMS',
      -32602,
      400,
      () => ({ rpc: ['ListTasks', { pageSize: 0 }], rest: ['GET', '/tasks?pageSize=0'] }),
    ],
    [
      'a state that there is not',
      'INVALID_PARAMS',
      -32602,
      400,
      () => ({ rpc: ['ListTasks', { status: 'done' }], rest: ['GET', '/tasks?status=done'] }),
    ],
    [
      'a page that is not ours',
      'INVALID_PARAMS',
      -32602,
      400,
      () => ({ rpc: ['ListTasks', { pageToken: 'x' }], rest: ['GET', '/tasks?pageToken=x'] }),
    ],
    ['an id too long', 'INVALID_PARAMS', -32602, 400, () => sent({ ...user, contextId: 'x'.repeat(257) })],
  ]
  const status = {
    TASK_NOT_FOUND: 'NOT_FOUND',
    CONTENT_TYPE_NOT_SUPPORTED: 'INVALID_ARGUMENT',
    INVALID_PARAMS: 'INVALID_ARGUMENT',
  }

  for (const [what, reason, code, http, call] of cases) {
    it(`says ${reason} to ${what}`, async () => {
      const { rpc, rest } = call()
      const byRpc = await a2a.rpc(...rpc)
      assert.equal(byRpc.status, 200)
      assert.equal(byRpc.id, 'x')
      assert.equal(byRpc.error.code, code)
      const byRest = await a2a.rest(...rest)
      assert.equal(byRest.status, http)
      assert.equal(byRest.error.code, http)
      assert.equal(byRest.error.status, status[reason as keyof typeof status] ?? 'FAILED_PRECONDITION')
      assert.equal(byRest.error.message, byRpc.error.message)
      for (const details of [byRpc.error.data, byRest.error.details]) {
        const [info, request] = details as Json[]
        assert.deepEqual(info, {
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason,
          domain: 'a2a-protocol.org',
        })
        assert.equal(
          request?.['@type'],
          reason === 'INVALID_PARAMS' ? 'type.googleapis.com/google.rpc.BadRequest' : undefined,
        )
        if (request !== undefined) assert.equal(request.fieldViolations.length, 1)
      }
    })
  }
})

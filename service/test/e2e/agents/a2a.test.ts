/** The official A2A client finds the agent by its card and completes verifications over both bindings (spec §9). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  AgentCard,
  Role,
  TaskState,
  verifyAgentCardSignature,
  type Message,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
} from '@a2a-js/sdk'
import { ClientFactory, ClientFactoryOptions, type Client } from '@a2a-js/sdk/client'
import { decodeProtectedHeader } from 'jose'
import { didOf } from '../../../src/passport/did-document.ts'
import { createTools } from '../../../src/agents/tools/tools.ts'
import { createLog } from '../../../src/lib/log.ts'
import type { Hex } from 'viem'
import { ownAgentAt, startA2a, type Json } from '../../support/agents/a2a.ts'
import { startWorld } from '../../support/world.ts'

const marker = 'MARKER-7F3A'

const world = await startWorld({ env: { PASSPORT_SIGNING: 'on' } })
const tokenId = String(await world.mint({ name: `Bag ${marker}`, brand: marker }))
const { issuer, verdicts, history, contract } = world.components
const tools = createTools({ verdicts, histories: history, contract: contract as Hex, log: createLog(() => {}) })
const a2a = await startA2a({ tools, issuer })
after(async () => {
  await a2a.close()
  await world.end()
})

describe('the official A2A client', () => {
  for (const binding of ['JSONRPC', 'HTTP+JSON']) {
    describe(`over ${binding}`, () => {
      let client: Client
      before(async () => {
        const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
          preferredTransports: [binding],
        })
        client = await new ClientFactory(options).createFromUrl(a2a.url)
      })

      it('verifies a product: the artifact is the verdict of the keyless read', async () => {
        const task = await sent(client, { skill: 'verify_asset', token_id: tokenId })
        assert.equal(task.status?.state, TaskState.TASK_STATE_COMPLETED)
        const verdict = dataOf(task)
        assert.deepEqual(verdict, await (await world.get(`/api/asset/${tokenId}`)).json())
        const { untrusted, ...rest } = verdict
        assert.ok(JSON.stringify(untrusted).includes(marker))
        assert.ok(
          !JSON.stringify({ ...task, artifacts: [] }).includes(marker) && !JSON.stringify(rest).includes(marker),
        )
      })

      it('gets no supplier text if it asks for none', async () => {
        const task = await sent(client, { token_id: tokenId, include_untrusted: false })
        assert.equal(task.status?.state, TaskState.TASK_STATE_COMPLETED)
        assert.ok(!JSON.stringify(task).includes(marker))
      })

      it('asks in words for the history and for flags', async () => {
        const history = dataOf(await sent(client, `Show the history of product ${tokenId}.`))
        assert.equal(history.available, true)
        assert.equal(history.events[0].type, 'AssetMinted')
        assert.equal(dataOf(await sent(client, `Is ${tokenId} flagged?`)).flagged, false)
      })

      it('streams a verification', async () => {
        const kinds: string[] = []
        for await (const event of client.sendMessageStream(request({ token_id: tokenId }))) kinds.push(kindOf(event))
        assert.deepEqual(kinds, ['task', 'statusUpdate', 'artifactUpdate', 'statusUpdate'])
      })

      it('is asked for a token id, and goes on', async () => {
        const waiting = await sent(client, 'Is my bag genuine?')
        assert.equal(waiting.status?.state, TaskState.TASK_STATE_INPUT_REQUIRED)
        const task = await sent(client, tokenId, { taskId: waiting.id, contextId: waiting.contextId })
        assert.equal(task.status?.state, TaskState.TASK_STATE_COMPLETED)
        const found = await client.getTask({ tenant: '', id: task.id, historyLength: 1 })
        assert.equal(found.history.length, 1)
        const { tasks } = await client.listTasks({
          tenant: '',
          contextId: task.contextId,
          status: TaskState.TASK_STATE_UNSPECIFIED,
          pageToken: '',
          statusTimestampAfter: undefined,
        })
        assert.deepEqual(
          tasks.map(({ id }) => id),
          [task.id],
        )
      })

      it('gets FAILED for a product that does not exist', async () => {
        const task = await sent(client, { token_id: '999999' })
        assert.equal(task.status?.state, TaskState.TASK_STATE_FAILED)
        const [part] = task.status?.message?.parts ?? []
        assert.ok(part?.content?.$case === 'data')
        assert.equal(part.content.value.error.code, 'ASSET_NOT_FOUND')
      })

      it('knows the errors by their names', async () => {
        const unknown = '00000000-0000-4000-8000-000000000000'
        await assert.rejects(client.getTask({ tenant: '', id: unknown }), /TaskNotFoundError/)
        const { id } = await sent(client, { token_id: tokenId })
        await assert.rejects(client.cancelTask({ tenant: '', id, metadata: undefined }), /TaskNotCancelableError/)
        const subscription = client.resubscribeTask({ tenant: '', id })
        await assert.rejects(async () => {
          for await (const _event of subscription) assert.fail('nothing should come')
        }, /UnsupportedOperationError/)
        await assert.rejects(client.sendMessage(request('', {}, { role: Role.ROLE_AGENT })), /RequestMalformedError/)
      })
    })
  }

  it('finds both bindings and three skills in the card, whose bytes stay the same', async () => {
    const response = await fetch(`${a2a.url}/.well-known/agent-card.json`)
    const card = (await response.json()) as Json
    assert.deepEqual(
      card.supportedInterfaces.map(({ url, protocolBinding, protocolVersion }: Json) => [
        url,
        protocolBinding,
        protocolVersion,
      ]),
      [
        [`${a2a.url}/a2a`, 'JSONRPC', '1.0'],
        [`${a2a.url}/a2a/v1`, 'HTTP+JSON', '1.0'],
      ],
    )
    assert.deepEqual(
      card.skills.map(({ id }: Json) => id),
      ['verify_asset', 'get_lifecycle_history', 'check_flagged'],
    )
    assert.deepEqual(card.capabilities, { streaming: true, pushNotifications: false, extendedAgentCard: false })
    assert.equal(card.name, ownAgentAt('').name)
    const etag = response.headers.get('etag') ?? ''
    assert.equal(response.headers.get('cache-control'), 'public, max-age=60')
    assert.ok(!Number.isNaN(Date.parse(response.headers.get('last-modified') ?? '')))
    const again = await fetch(`${a2a.url}/.well-known/agent-card.json`, { headers: { 'If-None-Match': etag } })
    assert.equal(again.status, 304)
  })

  it('offers the card without a signature while the key of the issuer cannot sign', async () => {
    const signer = issuer.signerFor('did:web:verify.example')
    let isAway = true
    const signDocument: typeof signer.signDocument = (document) =>
      isAway ? Promise.reject(new Error('the token is away')) : signer.signDocument(document)
    const present = { ...signer, signDocument }
    await using agent = await startA2a({ tools, issuer: { signerFor: () => present } })
    const signatures = async () =>
      ((await (await fetch(`${agent.url}/.well-known/agent-card.json`)).json()) as Json).signatures?.length
    assert.equal(await signatures(), undefined)
    isAway = false
    assert.equal(await signatures(), 1)
  })

  it('proves the card by the key of the issuer, and an altered card is refused', async () => {
    const card = (await (await fetch(`${a2a.url}/.well-known/agent-card.json`)).json()) as Json
    const [{ protected: header }] = card.signatures as [{ protected: string }]
    const [key] = world.components.issuer.keys().filter(({ algorithm }) => algorithm === 'ES256')
    assert.deepEqual(decodeProtectedHeader({ protected: header }), {
      alg: 'ES256',
      typ: 'JOSE',
      kid: `${didOf(a2a.url)}#${key?.id}`,
    })
    const verify = verifyAgentCardSignature(async () => ({ kty: 'EC', ...key?.publicJwk, alg: 'ES256' }))
    await verify(AgentCard.fromJSON(card))
    const altered = {
      ...card,
      supportedInterfaces: [{ ...card.supportedInterfaces[0], url: 'https://liar.example/a2a' }],
    }
    await assert.rejects(verify(AgentCard.fromJSON(altered)), /No valid signatures/)
  })

  const request = (
    content: string | object,
    ids: { taskId?: string; contextId?: string } = {},
    rest: Partial<Message> = {},
  ): SendMessageRequest => ({
    tenant: '',
    configuration: undefined,
    metadata: undefined,
    message: {
      messageId: crypto.randomUUID(),
      contextId: '',
      taskId: '',
      role: Role.ROLE_USER,
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
      ...ids,
      parts: [
        {
          content: typeof content === 'string' ? { $case: 'text', value: content } : { $case: 'data', value: content },
          metadata: undefined,
          filename: '',
          mediaType: '',
        },
      ],
      ...rest,
    },
  })

  async function sent(client: Client, ...args: Parameters<typeof request>): Promise<Task> {
    const answer = await client.sendMessage(request(...args))
    assert.ok('status' in answer, 'a task, not a message')
    return answer
  }
})

function dataOf(task: Task): Json {
  const content = task.artifacts[0]?.parts[0]?.content
  assert.ok(content?.$case === 'data')
  return content.value as Json
}

function kindOf(event: StreamResponse): string {
  return event.payload?.$case ?? ''
}

/** Acts that take two (APPROVALS), by GraphQL and by commands: asked for, listed, approved by another, done once (decisions/0021). */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type AuditBody, readAudit, verifyAudit } from '../../../src/db/audit.ts'
import { databaseActs } from '../../../src/access/approvals/acts.ts'
import { createApprovals } from '../../../src/access/approvals/approvals.ts'
import { createLog } from '../../../src/lib/log.ts'
import { tagStore } from '../../../src/tap/tag-registry.ts'
import type { Scope } from '../../../src/access/rights.ts'
import { newApiKey } from '../../../src/access/api-keys.ts'
import { keepSecret } from '../../support/evidence.ts'
import { noPostgres, openOwnDatabase } from '../../support/database/databases.ts'
import { startFaultRpc } from '../../support/fault-rpc.ts'
import { postGraphql } from '../../support/graphql/client.ts'
import { assertionsOf, commandsOf, type Ran } from '../../support/processes/cli.ts'
import { until } from '../../support/wait.ts'
import { startWorld, type World } from '../../support/world.ts'

const fields = 'id act subject status requestedBy decidedBy txHash failure facts product { id state }'
type Row = Record<string, unknown> & { id: string; status: string }
type Payload = { success: boolean; txHash: string | null; errors: { field: string; message: string }[]; approval: Row }

describe('acts that take two', () => {
  let world: World
  let run: (...argv: string[]) => Promise<Ran>
  let keyFile: string
  const keys: Record<string, { id: string; text: string }> = {}
  before(async () => {
    world = await startWorld({ env: { APPROVALS: 'recycle, batch-revoke,key-deletion', APPROVAL_HOURS: '2' } })
    run = commandsOf(world)
    const scopes: Record<string, Scope[]> = {
      asking: ['recycle', 'approve', 'read'],
      recycler: ['recycle', 'read'],
      second: ['approve', 'read'],
      writer: ['write', 'read'],
    }
    for (const [name, given] of Object.entries(scopes)) await newKey(name, given)
    await newKey('acme', ['approve', 'recycle', 'read'], ['Acme'])
    await newKey('acme-recycler', ['recycle', 'read'], ['Acme'])
    keyFile = join(world.settings.DATA_DIR, 'second.key')
    await writeFile(keyFile, `${keys['second']?.text}\n`)
  })
  after(() => world.end())

  async function newKey(name: string, scopes: readonly Scope[], brands: readonly string[] | null = null) {
    const { text, hash } = newApiKey()
    keepSecret(text)
    keys[name] = { id: await world.components.apiKeys.create({ hash, name, scopes, brands }), text }
  }
  async function ask<Data>(by: string, query: string, variables: object = {}): Promise<Data> {
    const response = await postGraphql(world.urls.graphql, keys[by]?.text ?? '', { query, variables })
    const { data, errors } = (await response.json()) as { data: Data; errors?: { extensions: { code: string } }[] }
    if (errors !== undefined) throw new Error(errors.map(({ extensions }) => extensions.code).join())
    return data
  }
  const step = async (by: string, field: string, input: object): Promise<Payload> => {
    const type = field === 'recycleProduct' ? 'RecycleProductInput' : 'ApprovalInput'
    const query = `mutation ($input: ${type}!) { ${field}(input: $input) { success txHash errors { field message } approval { ${fields} } } }`
    return (await ask<Record<string, Payload>>(by, query, { input }))[field] as Payload
  }
  const listed = async (by: string, filter = '(status: PENDING)') => {
    const query = `{ approvals${filter} { edges { node { ${fields} } } totalCount } }`
    const { approvals } = await ask<{ approvals: { edges: { node: Row }[]; totalCount: number } }>(by, query)
    assert.equal(approvals.totalCount, approvals.edges.length)
    return approvals.edges.map(({ node }) => node)
  }
  const stateOf = async (tokenId: bigint) => (await world.components.reader.read(tokenId)).asset.record.state
  const recycled = 6
  const minted = 1
  async function audited(id: string): Promise<string[]> {
    const bodies = (await readAudit(world.components.database, 0n, 10_000)).map(
      ({ body }) => JSON.parse(body) as AuditBody,
    )
    return bodies.filter(({ approval }) => approval === id).map(({ who, act, outcome }) => `${who} ${act} ${outcome}`)
  }

  it('a product is recycled by two keys, and by neither of them alone', async () => {
    const tokenId = await world.mint({ name: 'Watch', brand: 'Acme' })
    const input = { productId: String(tokenId), idempotencyKey: 'r1' }
    const asked = await step('asking', 'recycleProduct', input)
    assert.deepEqual([asked.success, asked.txHash, asked.approval.status], [false, null, 'PENDING'])
    assert.match(asked.errors[0]?.message ?? '', /^Request \w{12}: It waits until .* for the approval of a second key/)
    const { id } = asked.approval
    assert.equal((await step('asking', 'recycleProduct', input)).approval.id, id)
    assert.deepEqual([await stateOf(tokenId), (await listed('second')).map((row) => row.id)], [minted, [id]])
    const own = await step('asking', 'approveRequest', { approvalId: id })
    assert.deepEqual([own.success, own.errors[0]?.field], [false, 'approvalId'])
    assert.match(own.errors[0]?.message ?? '', /second key or operator/)
    assert.equal(await stateOf(tokenId), minted)

    const done = await step('second', 'approveRequest', { approvalId: id })
    assert.deepEqual([done.success, done.errors, done.approval.status], [true, [], 'DONE'])
    assert.deepEqual(done.approval['product'], { id: String(tokenId), state: 'RECYCLED' })
    assert.match(String(done.txHash), /^0x[0-9a-f]{64}$/)
    assert.equal(await stateOf(tokenId), recycled)
    const repeated = await step('asking', 'recycleProduct', input)
    assert.deepEqual([repeated.success, repeated.txHash, repeated.approval.status], [true, done.txHash, 'DONE'])
    assert.equal((await step('second', 'approveRequest', { approvalId: id })).success, false)
    const [first, second] = [`key:${keys['asking']?.id}`, `key:${keys['second']?.id}`]
    assert.deepEqual(await audited(id), [
      `${first} recycle REQUESTED`,
      `${first} recycle REFUSED`,
      `${second} recycle APPROVED`,
      `${first} recycle SIGNED`,
    ])
  })

  it('the key of a request is taken for every other step, while it waits and after it', async () => {
    await newKey('both', ['recycle', 'claim', 'read'])
    const productId = String(await world.mint({ name: 'F' }))
    const input = { productId, idempotencyKey: 'taken' }
    const { approval } = await step('both', 'recycleProduct', input)
    const signed = { signature: '0x12', deadline: '2099-01-01T00:00:00Z' }
    const claim = { claimant: `0x${'a'.repeat(40)}`, picc: '0'.repeat(32), cmac: '0'.repeat(16), ...signed }
    for (const status of ['PENDING', 'REJECTED']) {
      for (const [field, type, values] of [
        ['announceRecycle', 'ProductStepInput', {}],
        ['claimProduct', 'ClaimProductInput', claim],
        ['recycleProduct', 'RecycleProductInput', signed],
        ['recycleProduct', 'RecycleProductInput', { productId: String(await world.mint()) }],
      ] as const) {
        const query = `mutation ($input: ${type}!) { ${field}(input: $input) { success errors { field message } } }`
        const variables = { input: { ...input, ...values } }
        const { errors } = (await ask<Record<string, Payload>>('both', query, variables))[field] as Payload
        assert.deepEqual([errors[0]?.field, errors.length], ['idempotencyKey', 1], field)
        assert.match(errors[0]?.message ?? '', /used for another request/)
      }
      assert.deepEqual((await step('both', 'recycleProduct', input)).approval.status, status)
      await step('both', 'rejectRequest', { approvalId: approval.id })
    }
  })

  it('what the chain would reject is not asked for', async () => {
    const payload = await step('asking', 'recycleProduct', { productId: '999999' })
    assert.deepEqual([payload.approval, payload.errors[0]?.field], [null, 'productId'])
    assert.match((await run('asset', 'recycle', '999999')).err, /does not exist/)
  })

  it('a key with brands sees and decides the requests about its products only', async () => {
    const [own, other] = [
      await world.mint({ name: 'A', brand: 'Acme' }),
      await world.mint({ name: 'B', brand: 'Bolt' }),
    ]
    const ids = []
    for (const tokenId of [own, other])
      ids.push((await step('recycler', 'recycleProduct', { productId: String(tokenId) })).approval.id)
    await world.components.indexer.until(BigInt((await world.rpc('eth_blockNumber', [])) as string), 600_000)
    assert.deepEqual(
      (await listed('acme')).map((row) => row.id),
      [ids[0]],
    )
    const seen = async (id = '') =>
      (await ask<{ approval: Row | null }>('acme', `{ approval(id: "${id}") { id } }`)).approval
    assert.deepEqual([(await seen(ids[0]))?.id, await seen(ids[1]), await seen('nothing00000')], [ids[0], null, null])
    const [missing, foreign] = [
      await step('acme', 'approveRequest', { approvalId: 'nothing00000' }),
      await step('acme', 'approveRequest', { approvalId: ids[1] }),
    ]
    assert.deepEqual(foreign, missing)
    for (const by of ['acme', 'acme-recycler'])
      assert.deepEqual(await step(by, 'rejectRequest', { approvalId: ids[1] }), missing, by)
    await assert.rejects(step('acme-recycler', 'rejectRequest', { approvalId: ids[0] }), /FORBIDDEN/)
    assert.equal(await stateOf(other), minted)
    assert.equal((await step('acme', 'approveRequest', { approvalId: ids[0] })).success, true)
    assert.equal(await stateOf(own), recycled)
    assert.equal((await step('second', 'rejectRequest', { approvalId: ids[1] })).approval.status, 'REJECTED')
  })

  it('only the scope approve decides, and who asked may take the request back', async () => {
    const tokenId = await world.mint({ name: 'C' })
    const { approval } = await step('recycler', 'recycleProduct', { productId: String(tokenId) })
    const input = { approvalId: approval.id }
    await assert.rejects(step('recycler', 'approveRequest', input), /FORBIDDEN/)
    await assert.rejects(step('writer', 'approveRequest', input), /FORBIDDEN/)
    await assert.rejects(step('writer', 'rejectRequest', input), /FORBIDDEN/)
    await assert.rejects(step('second', 'recycleProduct', { productId: String(tokenId) }), /FORBIDDEN/)
    assert.equal((await step('recycler', 'rejectRequest', input)).approval.status, 'REJECTED')
    assert.equal((await step('second', 'approveRequest', input)).success, false)
    assert.equal(await stateOf(tokenId), minted)
  })

  it('a command asks, a second user or key approves, and the list says who', async () => {
    const { ok, refused } = assertionsOf(run)
    const tokenId = await world.mint({ name: 'D' })
    assert.match(await ok('asset', 'recycle', String(tokenId), '--dry-run'), /^Dry run/)
    const asked = await run('asset', 'recycle', String(tokenId), '--key', 'mine')
    const [, id = ''] = /^approval +(\w{12}) +PENDING$/m.exec(asked.out) ?? []
    assert.deepEqual([asked.exit, id.length], [1, 12])
    const again = await run('asset', 'recycle', String(tokenId), '--key', 'mine', '--json')
    assert.equal((JSON.parse(again.out) as { approval: Row }).approval.id, id)
    const announced = await refused('asset', 'announce-recycle', String(tokenId), '--key', 'mine')
    assert.match(announced, /key was used for another request/)
    assert.match(await ok('approval', 'list'), new RegExp(`${id} +recycle +${tokenId} +local:\\S+ .*PENDING`))
    assert.match(await refused('approval', 'approve', id), /the one that asked may only reject it/)
    const { status } = JSON.parse(await ok('approval', 'approve', id, '--key-file', keyFile, '--json')) as Row
    assert.deepEqual([status, await stateOf(tokenId)], ['DONE', recycled])
    assert.match(await ok('approval', 'show', id), new RegExp(`^decidedBy +key:${keys['second']?.id}$`, 'm'))
    assert.match(await ok('asset', 'recycle', String(tokenId), '--key', 'mine'), /done before under this key/)
    assert.match(await ok('approval', 'list', '--all'), new RegExp(`${id} .*DONE`))
    assert.match(await refused('approval', 'approve', id, '--key-file', 'none.key'), /cannot be read/)
    assert.match(await refused('approval', 'show', 'nothing00000'), /There is no request nothing00000/)
    const shown = JSON.parse(await ok('approval', 'show', id, '--json')) as Row
    assert.deepEqual([shown.id, shown.status], [id, 'DONE'])
    assert.deepEqual(JSON.parse(await ok('approval', 'list', '--json')), [])

    const other = await world.mint({ name: 'E' })
    assert.match(await refused('asset', 'recycle', String(other), '--key', 'mine'), /key was used for another request/)
    const next = JSON.parse((await run('asset', 'recycle', String(other), '--json')).out) as { approval: Row }
    for (const [text, sentence] of [
      ['no key', /holds no API key that is active/],
      [keys['writer']?.text ?? '', /lacks the scope approve, so it cannot approve here/],
    ] as const) {
      await writeFile(join(world.settings.DATA_DIR, 'other.key'), `${text}\n`)
      assert.match(await refused('approval', 'approve', next.approval.id, '--key-file', 'other.key'), sentence)
    }
    assert.equal(await stateOf(other), minted)
    assert.match(await ok('approval', 'approve', next.approval.id, '--key-file', keyFile), /DONE\ntransaction +0x/)
    assert.equal(await stateOf(other), recycled)
  })

  it('a batch and a key end by two', async () => {
    const { ok } = assertionsOf(run)
    await ok('tag', 'batch', 'create', 'spring')
    const asked = JSON.parse((await run('tag', 'batch', 'revoke', 'spring', '--json')).out) as { approval: Row }
    assert.match(await ok('tag', 'batch', 'list'), /spring +0 +active/)
    const { approval: seen } = await ask<{ approval: Row | null }>(
      'acme',
      `{ approval(id: "${asked.approval.id}") { id } }`,
    )
    assert.equal(seen, null, 'a batch is of no brand')
    await ok('approval', 'approve', asked.approval.id, '--key-file', keyFile)
    assert.match(await ok('tag', 'batch', 'list'), /spring +0 +revoked/)
    const lifted = JSON.parse((await run('tag', 'batch', 'retire', 'spring', '--lift-revocation', '--json')).out) as {
      approval: Row
    }
    assert.match(await ok('tag', 'batch', 'list'), /spring +0 +revoked/)
    const restored = await step('second', 'approveRequest', { approvalId: lifted.approval.id })
    assert.deepEqual([restored.approval?.act, restored.approval?.status], ['BATCH_RESTORE', 'DONE'])
    assert.match(await ok('tag', 'batch', 'list'), /spring +0 +retired/)
    await ok('tag', 'batch', 'create', 'summer')
    await ok('tag', 'batch', 'retire', 'summer')
    const commands = (await readAudit(world.components.database, 0n, 10_000))
      .map(({ body }) => JSON.parse(body) as AuditBody)
      .filter(({ act }) => act.startsWith('command tag batch'))
    assert.deepEqual(
      commands.map(({ act, subject, outcome }) => `${act} ${subject} ${outcome}`),
      ['create spring', 'create summer', 'retire summer'].map((done) => `command tag batch ${done} DONE`),
      'what was only asked for is not done',
    )
    await newKey('victim', ['read'])
    const victim = keys['victim']?.id ?? ''
    const { approval } = JSON.parse((await run('key', 'revoke', victim, '--json')).out) as { approval: Row }
    assert.doesNotMatch(await ok('key', 'show', victim), /revoked +\d/)
    const { success } = await step('second', 'approveRequest', { approvalId: approval.id })
    assert.equal(success, true)
    assert.match(await ok('key', 'show', victim), /revoked +\d/)
    assert.equal((await run('key', 'revoke', victim)).exit, 1)
  })

  it('the audit trail verifies, and no key stands in it', async () => {
    assert.equal((await verifyAudit(world.components.database)).ok, true)
    const text = (await readAudit(world.components.database, 0n, 10_000)).map(({ body }) => body).join()
    for (const { text: key } of Object.values(keys)) assert.ok(!text.includes(key))
  })
})

describe('a service whose writes cannot be recovered', { skip: noPostgres }, () => {
  it('goes on with requests for approval all the same', async () => {
    await using opened = new AsyncDisposableStack()
    const database = opened.use(await openOwnDatabase('migrated'))
    const late = createApprovals({
      database,
      required: new Set(['batch-revoke']),
      hours: 0,
      acts: databaseActs({ writeStatus: async () => {} }, async () => {}),
      log: createLog(() => {}),
    })
    await tagStore(database).putBatch({ id: 'late', epoch: 0, settings: {} })
    const asked = await late.request({ act: 'batch-revoke', subject: 'late' })
    assert.ok(asked.ok)
    const rpcUrl = async (target: string) => {
      const { url, set } = opened.adopt(await startFaultRpc({ target }), (it) => it.close())
      set({ name: 'rpc-error', methods: ['eth_getTransactionCount'] })
      return url
    }
    opened.adopt(await startWorld({ env: { DATABASE_URL: database.url }, rpcUrl }), (it) => it.end())
    const bodies = async () => (await readAudit(database, 0n, 100)).map(({ body }) => JSON.parse(body) as AuditBody)
    await until(async () => (await bodies()).some(({ outcome }) => outcome === 'EXPIRED'))
  })
})

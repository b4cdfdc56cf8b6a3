import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { keccak256 } from 'viem'
import { serve } from '../../../test/support/http.ts'
import { skipRedis, startRedis } from '../../../test/support/database/redis.ts'
import { testFolder } from '../../../test/support/folder.ts'
import { noPostgres, openOwnDatabase } from '../../../test/support/database/databases.ts'
import { diagnoseSettings } from './doctor.ts'

describe('the doctor of settings beside others', { skip: noPostgres }, () => {
  let here: Awaited<ReturnType<typeof openOwnDatabase>>
  let other: typeof here
  before(async () => {
    here = await openOwnDatabase()
    other = await openOwnDatabase()
  })
  after(async () => {
    await here.close()
    await other.close()
  })

  const foundOf = async (env: Readonly<Record<string, string>>, word: RegExp) => {
    const findings = await diagnoseSettings({ DATA_DIR: testFolder(), DATABASE_URL: here.url, ...env })
    return findings.filter(({ what }) => word.test(what)).map(({ state, what }) => `${state}: ${what}`)
  }

  it('says whether the replica answers, and whether it is one of DATABASE_URL', async () => {
    const replica = (url: string) => foundOf({ DATABASE_READ_URL: url }, /DATABASE_READ_URL|replica/)
    assert.deepEqual(await replica(''), [])
    assert.deepEqual(await replica(here.url), ['ok: The replica answers.'])
    assert.deepEqual(await replica(other.url), [
      'wrong: DATABASE_READ_URL names another database than DATABASE_URL: correct one of them.',
    ])
    const [away, ...rest] = await replica('postgres://user:secret@127.0.0.1:1/x')
    assert.deepEqual(rest, [])
    assert.match(away ?? '', /^warning: The replica of DATABASE_READ_URL does not answer: /)
    assert.ok(!away?.includes('secret'))
  })

  it('says that every connection of PostgreSQL is taken', async () => {
    const role = `${new URL(here.url).pathname.slice(1)}_late`
    await here.exec(`create role ${role} login password 'late' connection limit 0`)
    try {
      const url = Object.assign(new URL(here.url), { username: role, password: 'late' })
      const findings = await diagnoseSettings({ DATA_DIR: testFolder(), DATABASE_URL: url.href })
      assert.deepEqual(
        findings.filter(({ area }) => area === 'database').map(({ what, remedy }) => [what, remedy]),
        [
          [
            'PostgreSQL answers, and has no free connection.',
            'End clients that hold many, or raise the limit: max_connections, or that of the role.',
          ],
        ],
      )
    } finally {
      await here.exec(`drop role ${role}`)
    }
  })

  it('names a setting of the database that makes answers wrong, and the statement that mends it', async () => {
    const name = new URL(here.url).pathname.slice(1)
    await here.exec(`alter database ${name} set default_transaction_read_only = on`)
    try {
      const findings = await diagnoseSettings({ DATA_DIR: testFolder(), DATABASE_URL: here.url })
      assert.deepEqual(
        findings.filter(({ area }) => area === 'database'),
        [
          {
            area: 'database',
            state: 'wrong',
            what: `The database ${name} takes no writes, because default_transaction_read_only is on.`,
            remedy: `Run set default_transaction_read_only = off; alter role postgres in database ${name} set default_transaction_read_only = 'off', and let a pooler connect again.`,
          },
        ],
      )
    } finally {
      await here.exec(`begin read write; alter database ${name} reset default_transaction_read_only; commit`)
    }
  })

  it('names the tables to which the role of DATABASE_URL has no rights', async () => {
    const role = `touchstone_app_${randomBytes(6).toString('hex')}`
    const granted = await openOwnDatabase('migrated')
    const url = Object.assign(new URL(granted.url), { username: role, password: 'app' }).href
    const rights = () => foundOf({ DATABASE_URL: url, DATABASE_DIRECT_URL: granted.url }, /rights|has the schema/)
    try {
      await granted.exec(`create role ${role} login password 'app'`)
      await granted.exec(`grant select, insert, update, delete, truncate on all tables in schema public to ${role}`)
      assert.deepEqual(await rights(), ['ok: PostgreSQL answers, and has the schema of this program.'])
      await granted.exec(`revoke all on offered_message, rate_window from ${role}`)
      const [schema, ...rest] = await rights()
      assert.deepEqual(
        [schema, rest],
        [
          'ok: PostgreSQL answers, and has the schema of this program.',
          ['wrong: The role of DATABASE_URL has no rights to offered_message, rate_window.'],
        ],
      )
    } finally {
      await granted.exec(`drop owned by ${role}; drop role ${role}`)
      await granted.close()
    }
  })

  it('warns of a setting that another one leaves without effect', async () => {
    assert.deepEqual(await foundOf({ CHAIN_QUORUM: '2' }, /no effect/), [
      'warning: CHAIN_QUORUM has no effect with CHAIN_TRUST=rpc.',
    ])
  })
})

describe('the doctor of what the service asks', () => {
  const foundOf = async (env: Readonly<Record<string, string>>, areas: readonly string[]) =>
    (await diagnoseSettings({ DATA_DIR: testFolder(), ...env }))
      .filter(({ area }) => areas.includes(area))
      .map(({ area, state, what, remedy }) => `${state} ${area}: ${what} ${remedy ?? ''}`)

  it('counts in Redis as the service does, and so notices a replica', { skip: skipRedis }, async () => {
    await using opened = new AsyncDisposableStack()
    const redis = opened.adopt(await startRedis(), (it) => it.kill())
    const found = () => foundOf({ REDIS_URL: redis.url }, ['redis'])
    assert.deepEqual(await found(), ['ok redis: It counts limits, with this name and password. '])
    const socket = connect(Number(new URL(redis.url).port), '127.0.0.1')
    socket.write('REPLICAOF 127.0.0.1 1\r\n')
    assert.match(String(await once(socket, 'data')), /^\+OK/)
    socket.destroy()
    const [said, ...rest] = await found()
    assert.match(said ?? '', /^wrong redis: The Redis of REDIS_URL cannot be used: .*READONLY.* that takes writes/)
    assert.deepEqual(rest, [])
  })

  it('distinguishes a provider that is behind from a clock that is ahead', async () => {
    const seconds = () => Math.floor(Date.now() / 1_000)
    /** Ages of the newest block and of the provider's clock, in seconds. */
    const found = async (blockAge: number, clockAge: number | null) => {
      await using opened = new AsyncDisposableStack()
      const provider = opened.adopt(
        await serve((request, response) => {
          response.sendDate = false
          if (clockAge !== null) response.setHeader('date', new Date((seconds() - clockAge) * 1_000).toUTCString())
          let body = ''
          request.on('data', (part: Buffer) => (body += part.toString()))
          request.on('end', () => {
            const result = body.includes('eth_chainId')
              ? '0x14a34'
              : { timestamp: `0x${(seconds() - blockAge).toString(16)}` }
            response.end(
              JSON.stringify({ jsonrpc: '2.0', id: (JSON.parse(body || '{}') as { id?: number }).id, result }),
            )
          })
        }),
        (it) => it.close(),
      )
      const all = await foundOf({ CHAIN_RPC_URLS: provider.url.replace('://', '://name:secret@') }, ['chain', 'clock'])
      return all.filter((text) => / is behind|differs/.test(text)).map((text) => text.replaceAll(/:\d+ |-?\d+ s/g, ' '))
    }
    assert.deepEqual(await found(0, 0), [])
    const [clock, ...more] = await found(3_600, 3_598)
    assert.match(clock ?? '', /^wrong clock: It differs from the clock of localhost by .* Synchronise the clocks/)
    assert.deepEqual(more, [])
    assert.deepEqual(await found(3_600, 0), [
      'wrong chain: localhost is behind. Wait, or name another provider: verdicts would be 502.',
    ])
    assert.deepEqual(await found(3_600, null), [
      'wrong chain: localhost is behind, or the clock of this machine is ahead. Set the clock right, wait, or name another provider: verdicts would be 502.',
    ])
  })

  it('notices a provider without the block of CHAIN_BLOCK_TAG, or without the proofs of CHAIN_TRUST', async () => {
    await using opened = new AsyncDisposableStack()
    const open = async (refused: readonly string[]) => {
      const provider = await serve(async (request, response) => {
        const sent = Buffer.concat(await request.toArray()).toString('utf8')
        const { id, method, params } = JSON.parse(sent || '{}')
        const results: Record<string, unknown> = { eth_chainId: '0x14a34', eth_getCode: '0x' + '5'.repeat(4) }
        const isRefused = refused.includes(method) || refused.includes(params?.[0])
        const result = results[method] ?? { timestamp: `0x${Math.floor(Date.now() / 1_000).toString(16)}` }
        const error = { code: -32601, message: 'rpc method is not whitelisted' }
        response.end(JSON.stringify({ jsonrpc: '2.0', id, ...(isRefused ? { error } : { result }) }))
      })
      return opened.adopt(provider, (it) => it.close()).url
    }
    const [full, thin] = [await open([]), await open(['safe', 'eth_getProof'])]
    const contract = { CHAIN_CONTRACT: `0x${'12'.repeat(20)}` }
    const proof = {
      ...contract,
      CHAIN_TRUST: 'proof',
      CHAIN_INTERFACE: 'registry',
      CHAIN_CODE_HASH: keccak256('0x5555'),
    }
    const found = async (urls: readonly string[], env: Readonly<Record<string, string>>) =>
      (await foundOf({ CHAIN_RPC_URLS: urls.join(), ...env }, ['chain']))
        .filter((text) => / no (safe|proofs)/.test(text))
        .map((text) => text.replaceAll(/:\d+/g, ''))
    assert.deepEqual(await found([full], { ...contract, CHAIN_BLOCK_TAG: 'safe' }), [])
    assert.deepEqual(await found([thin], contract), [])
    assert.deepEqual(await found([thin], { ...contract, CHAIN_BLOCK_TAG: 'safe' }), [
      'wrong chain: There is no safe block at localhost: error -32601: rpc method is not whitelisted. Name another provider, or set CHAIN_BLOCK_TAG=latest.',
    ])
    const sentence = 'chain: There are no proofs at localhost: error -32601: rpc method is not whitelisted.'
    const remedy = 'Name another provider; CHAIN_TRUST=proof needs eth_getProof.'
    assert.deepEqual(await found([full], proof), [])
    assert.deepEqual(await found([thin], proof), [`wrong ${sentence} ${remedy}`])
    assert.deepEqual(await found([full, thin.replace('127.0.0.1', 'localhost')], proof), [
      `warning ${sentence} ${remedy}`,
    ])
  })
})

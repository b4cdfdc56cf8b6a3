import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
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

  it('warns of a quorum that nothing asks for', async () => {
    const quorum = (env: Readonly<Record<string, string>>) => foundOf(env, /CHAIN_QUORUM/)
    assert.deepEqual(await quorum({ CHAIN_QUORUM: '2', CHAIN_TRUST: 'rpc' }), [
      'warning: CHAIN_QUORUM has no effect with CHAIN_TRUST=rpc.',
    ])
    assert.deepEqual(await quorum({ CHAIN_QUORUM: '3' }), ['warning: CHAIN_QUORUM has no effect with CHAIN_TRUST=rpc.'])
    assert.deepEqual(await quorum({}), [])
    assert.deepEqual(await quorum({ CHAIN_QUORUM: '2', CHAIN_TRUST: 'quorum', CHAIN_RPC_URLS: '' }), [])
  })
})

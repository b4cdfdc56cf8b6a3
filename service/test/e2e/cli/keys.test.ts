/** `touchstone key …` in a running service: a key passes at once, is listed without itself, and ends within a second (spec §5). */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { after, before, describe, it } from 'node:test'
import { createAuthenticate, type Authenticate } from '../../../src/graphql/api-keys.ts'
import { createLog } from '../../../src/lib/log.ts'
import { commandsOf } from '../../support/processes/cli.ts'
import { keepSecret } from '../../support/evidence.ts'
import { startWorld, type World } from '../../support/world.ts'

describe('touchstone key', () => {
  let world: World
  let run: ReturnType<typeof commandsOf>
  before(async () => {
    world = await startWorld()
    run = commandsOf(world)
    authenticate = createAuthenticate({ keys: world.components.apiKeys, log: createLog(() => {}) })
  })
  after(() => world.end())

  /** As the GraphQL host asks, for every request. */
  let authenticate: Authenticate
  const passes = async (key: string) => (await authenticate(`Bearer ${key}`, '')).ok

  it('makes a key that works, prints it once, and lists it by id and name only', async () => {
    assert.match((await run('key', 'list')).out, /no key yet/)
    const made = await run('key', 'create', 'my-app', '--scope', 'read,write')
    assert.equal(made.exit, 0)
    assert.match(made.out, /^ts_live_[A-Za-z0-9_-]{43}$/)
    keepSecret(made.out)
    assert.match(made.err, /^Key [a-z0-9]{8} \(my-app\) with scope read, write\./)
    assert.equal(await passes(made.out), true)
    const listed = await run('key', 'list')
    assert.match(listed.out, /[a-z0-9]{8} +my-app +read,write +\d{4}-/)
    const [key] = JSON.parse((await run('key', 'list', '--json')).out) as { name: string; scopes: string[] }[]
    assert.deepEqual([key?.name, key?.scopes], ['my-app', ['read', 'write']])
    assert.ok([listed.out, ...world.lines].every((text) => !text.includes(made.out.slice(8))))
  })

  it('revokes a key within a second', async () => {
    const { out: key, err } = await run('key', 'create', 'gone soon')
    keepSecret(key)
    const [, id = ''] = /^Key (\w+)/.exec(err) ?? []
    assert.equal(await passes(key), true)
    assert.equal((await run('key', 'revoke', id)).exit, 0)
    await delay(1_000)
    assert.equal(await passes(key), false)
    assert.match((await run('key', 'list')).out, /gone soon .*revoked \d{4}-/)
    assert.deepEqual(await run('key', 'revoke', id), {
      exit: 1,
      out: '',
      err: `touchstone: There is no active key ${id}; see touchstone key list.`,
    })
  })

  it('refuses wrong words', async () => {
    for (const words of [
      ['create', ''],
      ['create', 'a', '--scope', 'admin'],
      ['revoke', 'x'],
      ['revoke', 'ABCDEFGH'],
    ])
      assert.equal((await run('key', ...words)).exit, 1, words.join(' '))
  })
})

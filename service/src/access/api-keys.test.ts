/** API keys (spec §5): made, found, revoked, and never kept as text. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import { testDatabases } from '../../test/support/database/databases.ts'
import { keepSecret } from '../../test/support/evidence.ts'
import { heldAnswers } from '../../test/support/held-answer.ts'
import { useOpened } from '../../test/support/opened.ts'
import { createRateLimiter } from '../http/rate-limit/limiter.ts'
import { createLog } from '../lib/log.ts'
import { apiKeyStore, type ApiKeyStore, createKeyAuthentication, newApiKey } from './api-keys.ts'

const log = createLog(() => {}, 'silent')

for (const { name, open, skip } of testDatabases())
  describe(`API keys on ${name}`, { skip }, () => {
    const database = useOpened(open)
    const keys = apiKeyStore(database)

    async function make(scopes: readonly ('read' | 'write')[] = ['read']) {
      const { text, hash } = newApiKey()
      keepSecret(text)
      return { text, id: await keys.create({ hash, name: 'my app', scopes }) }
    }
    /** Authenticates by a clock of the test, and counts the calls that reach the store. */
    function asking(attempts?: number) {
      const clock = { at: 1_000_000 }
      const counts = { found: 0, touched: 0 }
      const watched: Pick<ApiKeyStore, 'find' | 'touch'> = {
        find: (hash) => {
          counts.found += 1
          return keys.find(hash)
        },
        touch: (id) => {
          counts.touched += 1
          return keys.touch(id)
        },
      }
      const limiter = attempts === undefined ? undefined : createRateLimiter({ limit: attempts, now: () => clock.at })
      const authenticate = createKeyAuthentication({ keys: watched, attempts: limiter, log, now: () => clock.at })
      return {
        clock,
        counts,
        ask: (text: string | undefined) => authenticate(text && `Bearer ${text}`, '192.0.2.1', '192.0.2.1'),
      }
    }

    it('have 256 random bits after ts_live_, and only their hash is kept', async () => {
      const { text, id } = await make()
      assert.match(text, /^ts_live_[A-Za-z0-9_-]{43}$/)
      assert.match(id, /^[a-z0-9]{8}$/)
      const rows = await database.query<{ hash: Uint8Array }>('select * from api_key where id = $1', [id])
      assert.deepEqual(Buffer.from(rows[0]?.hash ?? []), createHash('sha256').update(text).digest())
      assert.ok(!JSON.stringify([rows, await keys.list()]).includes(text.slice(8)))
    })

    it('are found with their name and scopes, in any case of Bearer', async () => {
      const { text, id } = await make(['read', 'write'])
      const authenticate = createKeyAuthentication({ keys, log })
      for (const header of [`Bearer ${text}`, `bearer ${text}`])
        assert.deepEqual(await authenticate(header, '', ''), {
          ok: true,
          key: { id, name: 'my app', scopes: ['read', 'write'], brands: null },
        })
    })

    it('end within a second of their revocation also when the clock is set back meanwhile', async (t) => {
      const { text, id } = await make()
      const authenticate = createKeyAuthentication({ keys, log })
      assert.equal((await authenticate(`Bearer ${text}`, '', '')).ok, true)
      const [wall, monotonic] = [Date.now, performance.now.bind(performance)]
      t.mock.method(Date, 'now', () => wall() - 600_000)
      t.mock.method(performance, 'now', () => monotonic() + 1_000)
      await keys.revoke(id)
      assert.equal((await authenticate(`Bearer ${text}`, '', '')).ok, false)
    })

    it('end with their revocation where the machine was suspended since the last request', async (t) => {
      const { text, id } = await make()
      const authenticate = createKeyAuthentication({ keys, log })
      const stopped = performance.now()
      t.mock.method(performance, 'now', () => stopped)
      assert.equal((await authenticate(`Bearer ${text}`, '', '')).ok, true)
      await keys.revoke(id)
      const wall = Date.now()
      t.mock.method(Date, 'now', () => wall + 28_800_000)
      assert.equal((await authenticate(`Bearer ${text}`, '', '')).ok, false)
    })

    it('end when they expire, and are narrowed to verbs for versions that know no end', async () => {
      const { hash, text } = newApiKey()
      keepSecret(text)
      const id = await keys.create({ hash, name: 'soon', scopes: ['read'], expiresAt: Date.now() + 3_600_000 })
      const { ask, clock } = asking()
      assert.equal((await ask(text)).ok, true)
      assert.deepEqual(await keys.active([id]), [id])
      const listed = (await keys.list()).find((one) => one.id === id)
      assert.deepEqual(listed?.scopes, ['read:products', 'read:owners'])
      await database.query('update api_key set expires_at = clock_timestamp() where id = $1', [id])
      clock.at += 1_000
      assert.deepEqual(await ask(text), { ok: false, because: 'wrong' })
      assert.deepEqual(await keys.active([id]), [])
    })

    it('of some brands or networks are narrowed to verbs, too', async () => {
      for (const limits of [{ brands: ['Acme'] }, { networks: ['192.0.2.0/24'] }]) {
        const id = await keys.create({ hash: newApiKey().hash, name: 'narrow', scopes: ['read'], ...limits })
        const listed = (await keys.list()).find((one) => one.id === id)
        assert.deepEqual(listed?.scopes, ['read:products', 'read:owners'])
      }
    })

    it('are good in their networks only', async () => {
      const { hash, text } = newApiKey()
      keepSecret(text)
      await keys.create({ hash, name: 'office', scopes: ['read'], networks: ['192.0.2.0/24', '2001:db8::1'] })
      const authenticate = createKeyAuthentication({ keys, log })
      const from = (address: string) => authenticate(`Bearer ${text}`, '', address)
      for (const address of ['192.0.2.7', '::ffff:192.0.2.7', '2001:db8::1'])
        assert.equal((await from(address)).ok, true)
      for (const address of ['192.0.3.7', '2001:db8::2', '', 'unknown'])
        assert.deepEqual(await from(address), { ok: false, because: 'elsewhere' }, address)
    })

    it('are missing or wrong otherwise', async () => {
      const { text } = await make()
      const { ask } = asking()
      for (const nothing of [undefined, '']) assert.deepEqual(await ask(nothing), { ok: false, because: 'missing' })
      for (const wrong of [
        newApiKey().text,
        text.slice(0, -1),
        `${text}A`,
        text.toUpperCase(),
        `${text}\n`,
        'ts_live_',
      ])
        assert.deepEqual(await ask(wrong), { ok: false, because: 'wrong' })
      const authenticate = createKeyAuthentication({ keys, log })
      for (const header of [text, `Basic Bearer ${text}`, `Basic YTpi, Bearer ${text}`, `Bearer${text}`])
        assert.deepEqual(await authenticate(header, '', ''), { ok: false, because: 'wrong' })
    })

    it('are looked up once a second, however busy', async () => {
      const { text } = await make()
      const { ask, clock, counts } = asking()
      await Promise.all(Array.from({ length: 50 }, () => ask(text)))
      assert.equal(counts.found, 1)
      clock.at += 999
      assert.equal((await ask(text)).ok, true)
      assert.equal(counts.found, 1)
      clock.at += 1
      assert.equal((await ask(text)).ok, true)
      assert.equal(counts.found, 2)
    })

    it('count no more within a second after they are revoked', async () => {
      const { text, id } = await make()
      const { ask, clock } = asking()
      assert.equal((await ask(text)).ok, true)
      assert.equal(await keys.revoke(id), true)
      assert.equal(await keys.revoke(id), false)
      clock.at += 1_000
      assert.deepEqual(await ask(text), { ok: false, because: 'wrong' })
      const listed = (await keys.list()).find((one) => one.id === id)
      assert.match(listed?.revokedAt ?? '', /^\d{4}-\d\d-\d\dT[\d:]{8}Z$/)
    })

    it('draw on the budget of unknown ones once they are revoked', async () => {
      const { text, id } = await make()
      const { ask, clock } = asking(3)
      assert.equal((await ask(text)).ok, true)
      await keys.revoke(id)
      clock.at += 1_000
      for (let n = 0; n < 4; n += 1) assert.deepEqual(await ask(text), { ok: false, because: 'wrong' })
      assert.deepEqual(await ask(text), { ok: false, because: 'busy' })
    })

    it('are not accepted by a look-up of another request that began a second before', async () => {
      const { text, id } = await make()
      let [at, lookUps] = [0, 0]
      const { ask: find, hold } = heldAnswers((hash: Uint8Array) => ((lookUps += 1), keys.find(hash)))
      const authenticate = createKeyAuthentication({ keys: { ...keys, find }, log, now: () => at })
      const ask = () => authenticate(`Bearer ${text}`, '', '')
      const answer = hold()
      const before = ask()
      const release = await answer
      assert.equal(await keys.revoke(id), true)
      at += 1_000
      const joined = Array.from({ length: 20 }, ask)
      release()
      assert.equal((await before).ok, true)
      for (const late of await Promise.all(joined)) assert.deepEqual(late, { ok: false, because: 'wrong' })
      assert.equal(lookUps, 2)
    })

    it('are noted as used once a minute', async () => {
      const { text, id } = await make()
      const { ask, clock, counts } = asking()
      for (let n = 0; n < 60; n += 1) {
        await ask(text)
        clock.at += 1_000
      }
      assert.equal(counts.touched, 1)
      await ask(text)
      assert.equal(counts.touched, 2)
      await database.query('select 1')
      assert.match((await keys.list()).find((one) => one.id === id)?.lastUsedAt ?? '', /Z$/)
    })

    it('are accepted although the database does not note their use', async () => {
      const { text } = await make()
      const unnoted = { ...keys, touch: () => Promise.reject(new Error('read-only')) }
      const authenticate = createKeyAuthentication({ keys: unnoted, attempts: undefined, log })
      assert.ok((await authenticate(`Bearer ${text}`, '192.0.2.1', '192.0.2.1')).ok)
    })

    it('cannot be guessed for ever: unknown ones draw on a budget of the client', async () => {
      const { text } = await make()
      const { ask, clock, counts } = asking(3)
      assert.equal((await ask(text)).ok, true)
      for (let n = 0; n < 3; n += 1) assert.deepEqual(await ask(newApiKey().text), { ok: false, because: 'wrong' })
      assert.deepEqual(await ask(newApiKey().text), { ok: false, because: 'busy' })
      assert.equal(counts.found, 5)
      const other = (await make()).text
      assert.deepEqual(await ask(other), { ok: false, because: 'busy' }, 'ten are looked up in a second')
      assert.equal(counts.found, 5)
      clock.at += 100
      assert.equal((await ask(other)).ok, true, 'a right one behind the same address')
      clock.at += 5_000
      assert.deepEqual(await ask(newApiKey().text), { ok: false, because: 'busy' }, 'after it was looked up')
      assert.equal((await ask(text)).ok, true, 'a key that was right before goes on at the same moment')
      clock.at += 60_000
      assert.deepEqual(await ask(newApiKey().text), { ok: false, because: 'wrong' })
    })

    it('draw on no budget where they are right, however many requests come first', async () => {
      const { ask, counts } = asking(3)
      const texts = (await Promise.all(Array.from({ length: 5 }, () => make()))).map(({ text }) => text)
      const found = await Promise.all(Array.from({ length: 50 }, (_, n) => ask(texts[n % 5])))
      assert.ok(found.every(({ ok }) => ok))
      assert.equal(counts.found, 5)
      assert.deepEqual(await ask(newApiKey().text), { ok: false, because: 'wrong' })
    })

    it('cannot be guessed by many at once: so many of one client are looked up at one time', async () => {
      const { ask, counts } = asking(3)
      const found = await Promise.all(Array.from({ length: 500 }, () => ask(newApiKey().text)))
      assert.equal(counts.found, 100)
      assert.equal(found.filter((one) => !one.ok && one.because === 'wrong').length, 3)
      assert.equal(found.filter((one) => !one.ok && one.because === 'busy').length, 497)
    })

    it('are looked up one by one in the place of those that were found', async () => {
      const waiting: ((row: undefined) => void)[] = []
      const find = () => new Promise<undefined>((resolve) => waiting.push(resolve))
      const authenticate = createKeyAuthentication({ keys: { ...keys, find }, log })
      const ask = () => authenticate(`Bearer ${newApiKey().text}`, '', '')
      const asked = Array.from({ length: 100 }, ask)
      waiting[0]?.(undefined)
      await asked[0]
      asked.push(ask())
      assert.deepEqual(await ask(), { ok: false, because: 'busy' })
      assert.equal(waiting.length, 101)
      for (const answer of waiting) answer(undefined)
      assert.ok((await Promise.all(asked)).every((one) => !one.ok && one.because === 'wrong'))
    })
  })

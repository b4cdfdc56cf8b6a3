/** `touchstone key …` and `touchstone issuer …`, the entries of the audit trail that they make, and its signed head (spec §5). */
import assert from 'node:assert/strict'
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { before, describe, it } from 'node:test'
import { auditHeadFile, signHead } from '../../../src/app/audit-heads.ts'
import { createKeyAuthentication, type AuthenticateKey } from '../../../src/access/api-keys.ts'
import { createLog } from '../../../src/lib/log.ts'
import { keepSecret } from '../../support/evidence.ts'
import { commandsOf } from '../../support/processes/cli.ts'
import { startWorld } from '../../support/world.ts'
import { useOpened } from '../../support/opened.ts'

const world = useOpened(startWorld)
const inWorld = commandsOf(world)

describe('touchstone key', () => {
  before(() => {
    authenticate = createKeyAuthentication({
      keys: world.components.apiKeys,
      log: createLog(() => {}),
      now: () => clock.at,
    })
  })

  const clock = { at: 0 }

  /** As the GraphQL host asks, for every request. */
  let authenticate: AuthenticateKey
  const passes = async (key: string) => (await authenticate(`Bearer ${key}`, '', '127.0.0.1')).ok

  it('makes a key that works, prints it once, and lists it by id and name only', async () => {
    assert.match((await inWorld('key list')).out, /no key yet/)
    const made = await inWorld('key create my-app --scope read,write')
    assert.equal(made.exit, 0)
    assert.match(made.out, /^ts_live_[A-Za-z0-9_-]{43}$/)
    keepSecret(made.out)
    assert.match(made.err, /^Key [a-z0-9]{8} \(my-app\) with scope read, write\./)
    assert.equal(await passes(made.out), true)
    const listed = await inWorld('key list')
    assert.match(listed.out, /[a-z0-9]{8} +my-app +read,write +all +\d{4}-/)
    const [key] = JSON.parse((await inWorld('key list --json')).out) as { name: string; scopes: string[] }[]
    assert.deepEqual([key?.name, key?.scopes], ['my-app', ['read', 'write']])
    assert.ok([listed.out, ...world.lines].every((text) => !text.includes(made.out.slice(8))))
  })

  it('writes a key into a new file that only its owner reads, and makes none where the file is there', async () => {
    const file = join(world.settings.DATA_DIR, 'till.key')
    const made = await inWorld('key create till-file --out', file)
    const key = (await readFile(file, 'utf8')).trim()
    keepSecret(key)
    assert.deepEqual([made.exit, made.out, await passes(key)], [0, '', true])
    assert.ok(!made.err.includes(key.slice(8)))
    assert.equal((await stat(file)).mode & 0o777, 0o600)
    const again = await inWorld('key create till-again --out', file)
    assert.deepEqual([again.exit, again.out], [1, ''])
    assert.match(again.err, /till\.key exists already; give --out a new file\./)
    assert.ok(!(await inWorld('key list')).out.includes('till-again'))
    const asJson = await inWorld('key create till-json --json --out', `${file}.json`)
    assert.deepEqual(Object.keys(JSON.parse(asJson.out) as object), ['id', 'name', 'file', 'scopes'])
    keepSecret((await readFile(`${file}.json`, 'utf8')).trim())
  })

  it('leaves no file where the key could not be stored', async () => {
    const create = () => Promise.reject(new Error('it fails over'))
    const failing = commandsOf(world, { apiKeys: { ...world.components.apiKeys, create } })
    const file = join(world.settings.DATA_DIR, 'lost.key')
    assert.equal((await failing('key create lost --out', file)).exit, 1)
    await assert.rejects(readFile(file), { code: 'ENOENT' })
  })

  it('makes a key for some verbs and brands, and shows all that it may do', async () => {
    const brands = ['--brand', 'Calder & Wick', '--brand', 'Bolt, Inc.', '--network', '127.0.0.0/8,10.0.0.1']
    const made = await inWorld('key create till --scope flag:lost,read', ...brands, '--expires', '2099-01-01')
    keepSecret(made.out)
    assert.match(made.err, /with scope read, flag:lost, for products of Calder & Wick, Bolt, Inc\. only/)
    const [, id = ''] = /^Key (\w+)/.exec(made.err) ?? []
    const { out } = await inWorld(`key show ${id}`)
    assert.match(out, /^verbs +flag:lost, read:products, read:owners$/m)
    assert.match(out, /^brands +Calder & Wick, Bolt, Inc\.$/m)
    assert.match(out, /^networks +127\.0\.0\.0\/8, 10\.0\.0\.1$/m)
    assert.match(out, /^expires +2099-01-01T00:00:00Z$/m)
    assert.ok(!out.includes(made.out.slice(8)))
    const wrong = [
      ['create', 'x', '--scope', 'mint,sell'],
      ['create', 'x', '--brand', ' Bolt'],
      ['create', 'x', '--network', '10.0.0.0/33'],
      ['create', 'x', '--expires', '2020-01-01'],
      ['show', 'aaaaaaaa'],
    ]
    for (const words of wrong) assert.notEqual((await inWorld('key', ...words)).exit, 0, words.join(' '))
  })

  it('shows who made a key in the audit trail, verifies it and exports it', async () => {
    const made = await inWorld('key create audited --scope mint')
    keepSecret(made.out)
    const [, id = ''] = /^Key (\w+)/.exec(made.err) ?? []
    const listed = await inWorld('audit list --last 1')
    assert.match(listed.out, new RegExp(`local:\\S+ +key\\.create +${id} +DONE`))
    const verified = await inWorld('audit verify')
    const [, seq = ''] = /^head (\d+):0x[0-9a-f]{64}$/m.exec(verified.out) ?? []
    assert.equal((await inWorld('audit verify --head', `${seq}:0x${'11'.repeat(32)}`)).exit, 1)
    for (const wrong of ['1', `${seq}:0x11`])
      assert.match((await inWorld('audit verify --head', wrong)).err, /A head is <number>:<hash> or a JWS/)
    assert.match((await inWorld('audit export --after x')).err, /It is the number of an entry, such as 1000/)
    const after = ['--after', String(Number(seq) - 1)]
    const { out } = await inWorld('audit export', ...after)
    assert.match(out, new RegExp(`^{"seq":"${seq}",.*"act":"key.create","subject":"${id}"`))
    const cef = (await inWorld('audit export --cef', ...after)).out
    assert.match(cef, /^CEF:0\|Touchstone\|touchstone\|[^|]+(\|key\.create){2}\|6\|externalId=\d+ rt=\d{13} suser=/)
  })

  it('revokes a key within a second', async () => {
    const { id = '', key = '' } = JSON.parse((await inWorld('key create', 'gone soon', '--json')).out)
    keepSecret(key)
    assert.match((await inWorld(`key show ${id} --json`)).out, /"name": "gone soon"/)
    assert.equal(await passes(key), true)
    assert.deepEqual(JSON.parse((await inWorld(`key revoke ${id} --json`)).out), { id, revoked: true })
    clock.at += 1_000
    assert.equal(await passes(key), false)
    assert.match((await inWorld('key list')).out, /gone soon .*revoked \d{4}-/)
    assert.deepEqual(await inWorld(`key revoke ${id}`), {
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
      assert.equal((await inWorld('key', ...words)).exit, 1, words.join(' '))
  })
})

describe('touchstone issuer', () => {
  it('says what each change of the keys did, and refuses what cannot be', async () => {
    assert.match((await inWorld('issuer list')).out, /no issuer key yet/)
    assert.match((await inWorld('audit head')).out, /^head \d+:0x[0-9a-f]{64}$/, 'without issuer keys')
    assert.match((await inWorld('issuer revoke key-1')).err, /There are no issuer keys yet\./)
    assert.match((await inWorld('issuer rotate')).out, /^key-1 \(ES256\) signs from now on\.\nkey-2 \(Ed25519\) signs/)
    assert.match((await inWorld('issuer rotate')).out, /^key-3 .*\nkey-4 /)
    assert.match((await inWorld('issuer retire key-4')).out, /^key-4 signs no more\. What it signed stays valid\.$/)
    const refused = await inWorld('issuer retire key-3')
    assert.deepEqual([refused.exit, /only one that signs/.test(refused.err)], [1, true])
    const revoked = await inWorld('issuer revoke key-3 --at 2026-01-31')
    assert.match(
      revoked.out,
      /^key-3 is revoked: nothing that it signed is valid\.\nkey-5 \(ES256\) signs from now on\.\nCopy keys\/issuer\.jwks\.json to every other data folder/,
    )
    assert.equal((await inWorld('issuer revoke key-9 --at 2999-01-31')).exit, 1)
    const { out } = await inWorld('issuer list --json')
    const keys = JSON.parse(out) as { id: string; status: string; revoked: string | null }[]
    assert.deepEqual(
      keys.map(({ id, status, revoked: at }) => [id, status, at]),
      [
        ['key-1', 'retired', null],
        ['key-2', 'retired', null],
        ['key-3', 'revoked', '2026-01-31T00:00:00Z'],
        ['key-4', 'retired', null],
        ['key-5', 'active', null],
      ],
    )
    assert.doesNotMatch(out, /"d"/)
  })

  it('sign the head of the audit trail, which shows a trail that is another one', async () => {
    const { out } = await inWorld('audit head')
    const [, seq = '', signed = ''] = /^head (\d+):0x[0-9a-f]{64}\nsigned (\S+)$/.exec(out) ?? []
    assert.equal((await inWorld('audit verify --head', signed)).exit, 0)
    const forged = signed.replace(/(?<=\.)[^.]+(?=\.)/, Buffer.from('{"seq":"1"}').toString('base64url'))
    assert.match((await inWorld('audit verify --head', forged)).err, /this issuer did not sign it/)

    const file = auditHeadFile(world.settings.DATA_DIR)
    const none = new RegExp(`^signed heads that agree: none in ${file}\\. Only a head that was kept elsewhere`, 'm')
    assert.match((await inWorld('audit verify')).out, none)
    await mkdir(dirname(file))
    const { issuer } = world.components
    const line = (hash: string) =>
      signHead(issuer, 'did:web:test', { seq: BigInt(seq), hash }, Date.parse('2026-11-22T06:00:00Z'))
    await writeFile(file, `${signed}\n`)
    assert.match((await inWorld('audit verify')).out, /^signed heads that agree: 1, the newest \d+:0x\w+, signed with/m)
    await writeFile(file, `${signed}\n${await line(`0x${'11'.repeat(32)}`)}\n`)
    assert.match(
      (await inWorld('audit verify')).err,
      new RegExp(`entry ${seq} is wrong or missing.*0x1111.*signed with key-5 on 2026-11-22T06:00:00.000Z`),
    )
    await writeFile(file, `${forged}\n`)
    assert.match((await inWorld('audit verify')).err, /holds a head that this issuer did not sign/)
    await writeFile(file, `${signed}\n`)
    await inWorld('issuer revoke key-5')
    const verified = await inWorld('audit verify')
    assert.match(verified.err, /their key is revoked: 1/)
    assert.match(verified.out, none)
    assert.equal(verified.exit, 0)
    await rm(file)
  })
})

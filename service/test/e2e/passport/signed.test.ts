/** Signed passports over HTTP, checked by the libraries that others use; keys from did:web, status from the served lists (spec §9). */
import assert from 'node:assert/strict'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { verifyCredential } from '@digitalbazaar/vc'
import { checkStatus } from '@digitalbazaar/vc-bitstring-status-list'
import { compactVerify, decodeProtectedHeader, importJWK } from 'jose'
import { auditHeadFile, readHeads } from '../../../src/app/audit-heads.ts'
import { hostOf } from '../../support/pages/host.ts'
import { loaderWith, passportErrors } from '../../support/passport/documents.ts'
import { changeIssuerKeys, parseIssuerKeys } from '../../../src/passport/signing/issuer-keys.ts'
import { openIssuer } from '../../../src/passport/signing/issuer.ts'
import { raw, type Reply } from '../../support/http.ts'
import { documentedCheck } from '../../support/docs/passport-check.ts'
import { methodDocument, proofSuite } from '../../support/passport/issuer.ts'
import { openItems, queryOf, type TappedItem } from '../../support/passport/passport.ts'
import { until } from '../../support/wait.ts'
import { startWorld } from '../../support/world.ts'

type Method = { id: string; publicKeyJwk?: Record<string, string>; revoked?: string }
type Did = { id: string; verificationMethod?: Method[]; assertionMethod: string[] }
type Status = { statusPurpose: string; statusListIndex: string | number; statusListCredential: string }
type Signed = Record<string, unknown> & {
  description: string
  validUntil: string
  proof?: { verificationMethod: string }
  credentialStatus: Status | Status[]
}
const reasonHash = `0x${'0'.repeat(64)}` as const

const world = await startWorld({ env: { PASSPORT_SIGNING: 'on', ISSUER_NAME: 'Example Verifier' } })
after(() => world.end())
const items = await openItems(world)
const item = await items.bound({ name: 'Signed' })

describe('signed passports', () => {
  const pathOf = ({ gtin, serial, tag }: TappedItem) => `/api/dpp/01/${gtin}/21/${serial}?${queryOf(tag.next())}`
  async function tap(accept: string, of = item, profile = ''): Promise<Reply> {
    const reply = await raw(world.url, `${pathOf(of)}${profile}`, { headers: { accept } })
    assert.equal(reply.status, 200, reply.text)
    return reply
  }
  const didDocument = async () => JSON.parse((await raw(world.url, '/.well-known/did.json')).text) as Did
  const jsonAt = async (url: string) => JSON.parse((await raw(world.url, new URL(url).pathname)).text) as object

  /** Loads the documents of a verifier, over HTTP where they are ours. */
  async function documentLoader(url: string) {
    const did = await didDocument()
    const method = did.verificationMethod?.find(({ id }) => id === url)
    const own = method ? methodDocument(method) : url === did.id ? did : undefined
    if (own !== undefined) return loaderWith({ [url]: own })(url)
    return loaderWith(url.startsWith(world.url) ? { [url]: await jsonAt(url) } : {})(url)
  }
  /** The form with the two statuses of W3C. */
  const w3c = '&profile=w3c'
  const suite = proofSuite()
  /** The library says whether the lists hold; whether a set bit is acceptable is the verifier's own business. */
  async function statusOf(credential: object) {
    const { verified, results = [], error } = await checkStatus({ credential, documentLoader, suite })
    assert.equal(error, undefined)
    return { verified: verified && !results.some(({ status }) => status), results }
  }
  const verify = (credential: object) =>
    verifyCredential({
      credential,
      suite,
      documentLoader,
      checkStatus: (options) => statusOf((options as { credential: object }).credential),
    })

  async function verifyJws(jws: string): Promise<Signed> {
    const { kid, typ, cty, alg } = decodeProtectedHeader(jws)
    assert.deepEqual([typ, cty, alg], ['vc+jwt', 'vc', 'ES256'])
    const method = (await didDocument()).verificationMethod?.find(({ id }) => id === kid)
    const { payload } = await compactVerify(jws, await importJWK(method?.publicKeyJwk ?? {}, 'ES256'), {
      algorithms: ['ES256'],
    })
    return JSON.parse(Buffer.from(payload).toString()) as Signed
  }

  it('come from a service that also signs the head of its audit trail, into the log and a private file', async () => {
    const file = auditHeadFile(world.settings.DATA_DIR)
    await until(async () => (await readHeads(file)).length === 1)
    const [line = ''] = await readHeads(file)
    assert.ok(world.lines.some((text) => text.includes('"event":"audit head signed"') && text.includes(line)))
    assert.equal((await stat(file)).mode & 0o777, 0o600)
  })

  it('come as a JWS that verifies with the key of the did:web document, and not after a flipped byte', async () => {
    const { headers, text } = await tap('application/vc+jwt')
    assert.deepEqual(
      [headers['content-type'], headers['vary'], headers['cache-control']],
      ['application/vc+jwt', 'Accept', 'no-store'],
    )
    const passport = await verifyJws(text)
    assert.match(passport.description, /^Signed passport/)
    assert.ok(Date.parse(passport.validUntil) > Date.now())
    assert.equal((await didDocument()).id, `did:web:127.0.0.1%3A${new URL(world.url).port}`)
    const at = Math.floor(text.length / 2)
    await assert.rejects(verifyJws(`${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`))
  })

  it('come with an embedded proof that verifies, with its status, and not after a changed character', async () => {
    const { headers, text } = await tap('application/vc')
    assert.equal(headers['content-type'], 'application/vc')
    const { verified, error } = await verify(JSON.parse(text) as object)
    assert.ok(verified, JSON.stringify(error, Object.getOwnPropertyNames(error ?? {})))
    assert.equal((await verify(JSON.parse(text.replace('"Signed"', '"Sighed"')) as object)).verified, false)
  })

  it('go only to clients that prefer them; all others get the unsigned bytes', async () => {
    const path = pathOf(item)
    const plain = (await raw(world.url, path)).text
    assert.match(plain, /"Unsigned passport/)
    for (const accept of [
      '*/*',
      'application/json',
      'application/ld+json',
      'application/vc;q=0.5, application/ld+json',
      'application/ld+json, application/vc+jwt',
      'image/png',
    ])
      assert.equal((await raw(world.url, path, { headers: { accept } })).text, plain, accept)
    const signed = await raw(world.url, path, { headers: { accept: 'application/vc+jwt, application/ld+json;q=0.9' } })
    assert.equal(signed.headers['content-type'], 'application/vc+jwt')
    const folder = join(world.settings.DATA_DIR, 'keys')
    const issuer = await openIssuer({ folder, signing: false })
    const without = hostOf(world, { issuer })
    assert.equal(await (await without.request(path)).text(), plain, 'a service that signs nothing')
    assert.doesNotMatch(plain, /proof|credentialStatus|validUntil/)
  })

  it('are valid UNTP in both forms, and one with two statuses only on request', async () => {
    const [embedded, jws] = [
      JSON.parse((await tap('application/vc')).text) as Signed,
      await verifyJws((await tap('application/vc+jwt')).text),
    ]
    assert.deepEqual([passportErrors(embedded), passportErrors(jws)], [[], []])
    assert.ok('credentialSchema' in jws && !Array.isArray(jws.credentialStatus))
    const asked = JSON.parse((await tap('application/vc', item, w3c)).text) as Signed
    assert.equal([asked.credentialStatus].flat().length, 2)
    assert.equal((await verify(asked)).verified, true)
    const unknown = await raw(world.url, `${pathOf(item)}&profile=x`, { headers: { accept: 'application/vc' } })
    assert.deepEqual([unknown.status, JSON.parse(unknown.text).verified], [400, false])
  })

  it('are what the bare link of the item leads to for a client that names a form', async () => {
    const link = pathOf(item).slice('/api/dpp'.length)
    for (const accept of ['application/vc+jwt', 'application/vc', 'application/ld+json']) {
      const reply = await raw(world.url, link, { headers: { accept } })
      assert.deepEqual([reply.status, reply.headers['location']], [303, `${world.url}/api/dpp${link}`], accept)
    }
    const page = await raw(world.url, link, { headers: { accept: 'text/html, application/vc+jwt;q=0.9, */*;q=0.8' } })
    assert.deepEqual([page.status, page.headers['content-type']], [200, 'text/html; charset=utf-8'])
    assert.doesNotMatch(page.text, /It is unsigned/)
  })

  it('show a flag in the status list within one block, and its end', async () => {
    const flagged = await items.bound({ name: 'Flagged' })
    const credential = JSON.parse((await tap('application/vc', flagged, w3c)).text) as Signed
    const single = JSON.parse((await tap('application/vc', flagged)).text) as Signed
    const jws = (await tap('application/vc+jwt', flagged)).text
    const checkPassport = await documentedCheck()
    assert.equal((await checkPassport(jws, world.url)).id, single.id)
    /** A list that took long to make rests before it is made again. So a busy machine shows a change a moment later. */
    const shows = (verified: boolean, suspension: boolean, revocation: boolean) =>
      until(async () => {
        const now = await statusOf(credential)
        const bits = now.results.map(({ status, credentialStatus }) => [credentialStatus.statusPurpose, status])
        return isDeepStrictEqual(
          { verified: now.verified, bits },
          { verified, bits: Object.entries({ suspension, revocation }) },
        )
      })
    await shows(true, false, false)
    await world.write({ kind: 'flag', tokenId: flagged.tokenId, bits: 0x04, reasonHash })
    await shows(false, true, false)
    assert.equal((await verify(credential)).verified, false)
    await assert.rejects(checkPassport(jws, world.url), /suspension/)
    await world.write({ kind: 'resolve', tokenId: flagged.tokenId, bits: 0x04, reasonHash })
    await shows(true, false, false)
    await world.write({ kind: 'recycle', tokenId: flagged.tokenId })
    await shows(false, true, true)
    assert.equal((await statusOf(single)).verified, false, 'the form with one status')
    const other = JSON.parse((await tap('application/vc')).text) as Signed
    assert.equal((await statusOf(other)).verified, true, 'the bit of another item')
  })

  it('name one place for each item, in lists that are always signed and exist only with somebody in them', async () => {
    const [one, again] = [await tap('application/vc', item, w3c), await tap('application/vc+jwt', item, w3c)]
    const credentialStatus = [(JSON.parse(one.text) as Signed).credentialStatus].flat()
    assert.deepEqual(credentialStatus, (await verifyJws(again.text)).credentialStatus)
    assert.deepEqual(
      credentialStatus.map(({ statusPurpose }) => statusPurpose),
      ['suspension', 'revocation'],
    )
    for (const { statusListCredential } of credentialStatus) {
      const path = new URL(statusListCredential).pathname
      const list = await raw(world.url, path)
      assert.deepEqual(
        [list.status, list.headers['content-type'], list.headers['access-control-allow-origin']],
        [200, 'application/vc', '*'],
      )
      assert.equal(
        (await verifyCredential({ credential: JSON.parse(list.text) as object, suite, documentLoader })).verified,
        true,
      )
      const jws = await raw(world.url, path, { headers: { accept: 'application/vc+jwt' } })
      await verifyJws(jws.text)
      const same = await raw(world.url, path, { headers: { 'if-none-match': String(list.headers['etag']) } })
      assert.deepEqual([same.status, same.text], [304, ''])
    }
    for (const path of [
      'suspension/2',
      'suspension/0',
      'suspension/01',
      'suspension/1/',
      'refresh/1',
      '',
      'suspension',
    ])
      assert.equal((await raw(world.url, `/api/status/${path}`)).status, 404, path)
  })

  it('are listed in the linkset of the item', async () => {
    const { text } = await raw(world.url, `/01/${item.gtin}/21/${item.serial}?linkType=linkset`)
    for (const form of ['application/vc+jwt', 'application/vc']) assert.ok(text.includes(`"type":"${form}"`), form)
  })

  it('verify after the keys were rotated, and not once their keys are revoked', async () => {
    const file = join(world.settings.DATA_DIR, 'keys', 'issuer.jwks.json')
    assert.equal((await stat(file)).mode & 0o777, 0o600)
    const [jws, embedded] = [
      (await tap('application/vc+jwt')).text,
      JSON.parse((await tap('application/vc')).text) as Signed,
    ]
    assert.equal(await world.components.issuer.change({ kind: 'rotate' }), null)
    assert.equal((await stat(file)).mode & 0o777, 0o600)
    await verifyJws(jws)
    assert.equal((await verify(embedded)).verified, true)
    const newer = JSON.parse((await tap('application/vc')).text) as Signed
    assert.match(newer.proof?.verificationMethod ?? '', /#key-4$/)
    assert.equal((await verify(newer)).verified, true)
    const revoke = { kind: 'revoke', id: 'key-4', at: '2026-01-02T03:04:05Z' } as const
    assert.equal(await world.components.issuer.change(revoke), null)
    assert.equal((await verify(newer)).verified, false)
    assert.equal((await verify(embedded)).verified, true)
    const { verificationMethod = [], assertionMethod } = await didDocument()
    assert.deepEqual([verificationMethod.length, assertionMethod.length], [5, 4])
    for (const { publicKeyJwk = {} } of verificationMethod) assert.ok(!('d' in publicKeyJwk))
    const secret = (JSON.parse(await readFile(file, 'utf8')) as { keys: { d: string }[] }).keys.map(({ d }) => d)
    for (const d of secret) assert.ok(!world.lines.join().includes(d))
  })

  it('are signed with the keys of a file that was edited in its place, within seconds', async () => {
    const file = join(world.settings.DATA_DIR, 'keys', 'issuer.jwks.json')
    const text = await readFile(file, 'utf8')
    const parsed = parseIssuerKeys(text)
    const key = parsed.ok && parsed.keys.find(({ algorithm, status }) => algorithm === 'Ed25519' && status === 'active')
    const edited = await changeIssuerKeys(text, { kind: 'retire', id: key ? key.id : '' })
    assert.ok(typeof edited === 'string')
    await writeFile(file, edited)
    const offered = async () => (await raw(world.url, pathOf(item), { headers: { accept: 'application/vc' } })).status
    await until(async () => (await offered()) === 406)
    await writeFile(file, text)
    await until(async () => (await offered()) === 200)
  })

  it('leave nothing of a tap, a chip or an owner in the log', () => assert.deepEqual(items.leaks(world.lines), []))

  describe('signing that is off', () => {
    it('keeps the status lists of passports that were issued before', async () => {
      const credential = JSON.parse((await tap('application/vc')).text) as Signed
      const folder = join(world.settings.DATA_DIR, 'keys')
      const issuer = await openIssuer({ folder, signing: false })
      const host = hostOf(world, { issuer })
      for (const { statusListCredential } of [credential.credentialStatus].flat()) {
        const list = await host.request(new URL(statusListCredential).pathname)
        assert.equal(list.status, 200)
        assert.equal(
          (await verifyCredential({ credential: (await list.json()) as object, suite, documentLoader })).verified,
          true,
        )
      }
      assert.equal((await host.request(pathOf(item), { headers: { accept: 'application/vc' } })).status, 406)
    })

    it('still publishes keys that once signed, and a file that is no key file stops the start with one sentence', async () => {
      const folder = join(world.settings.DATA_DIR, 'keys')
      const [both, other] = await Promise.all([
        openIssuer({ folder, signing: false }),
        openIssuer({ folder, signing: true }),
      ])
      assert.equal(both.keys().length, 5)
      assert.deepEqual(
        other.keys().map(({ publicJwk }) => publicJwk),
        both.keys().map(({ publicJwk }) => publicJwk),
      )
      await writeFile(join(folder, 'issuer.jwks.json'), '{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}')
      await assert.rejects(openIssuer({ folder, signing: true }), (error: Error) => !error.message.includes('c2VjcmV0'))
    })
  })
})

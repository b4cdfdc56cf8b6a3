/** GET /api/asset/{tokenId} over real HTTP, a real chain and a real database (spec §2.1–2.4, §4.1, §7). */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { checkProofBundle, isOwner, type ProofBundle, prove, recheck, type Verdict } from '@touchstone/verdict'
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import { raw } from '../../support/http.ts'
import { useOpened } from '../../support/opened.ts'
import { startWorld, type World } from '../../support/world.ts'

const tag = `0x${'ab'.repeat(32)}` as const
const noReason = `0x${'0'.repeat(64)}` as const

describe('GET /api/asset/{tokenId}', () => {
  const world = useOpened(() => startWorld({ env: { PROOF_BUNDLE: 'on' } }))
  let plain: bigint
  let described: bigint
  before(async () => {
    plain = await world.mint()
    described = await world.mint({ name: 'A \u202Ename\u0007', brand: 'Brand', image: 'javascript:alert(1)' })
  })

  it('answers with exactly the keys of spec §2.1, in their order', async () => {
    const response = await world.get(`/api/asset/${plain}`)
    assert.equal(response.status, 200)
    assert.equal(response.headers.get('content-type'), 'application/json')
    const verdict = (await response.json()) as Verdict
    const keys = [
      'version',
      'token_id',
      'authentic',
      'state',
      'state_code',
      'flagged',
      'owner_commitment',
      'chainRef',
      'network',
      'audit_status',
      'production_ready',
    ]
    assert.deepEqual(Object.keys(verdict), keys)
    assert.deepEqual(Object.keys(verdict.chainRef), ['chain_id', 'contract', 'token_id', 'block_number', 'block_hash'])
    assert.deepEqual(
      { ...verdict, owner_commitment: null, chainRef: null },
      {
        version: '1',
        token_id: '1',
        authentic: true,
        state: 'MINTED',
        state_code: 1,
        flagged: false,
        owner_commitment: null,
        chainRef: null,
        network: 'base-sepolia',
        audit_status: 'unaudited',
        production_ready: false,
      },
    )
    assert.ok(isOwner(verdict, publishedAddresses[0] ?? '0x'))
    const withText = (await (await world.get(`/api/asset/${described}`)).json()) as Verdict
    assert.deepEqual(Object.keys(withText), keys.toSpliced(8, 0, 'untrusted'))
  })

  it('confines supplier text to `untrusted`, cleaned, with its warning', async () => {
    const { untrusted } = (await (await world.get(`/api/asset/${described}`)).json()) as Verdict
    assert.deepEqual({ ...untrusted, _warning: '' }, { _warning: '', name: 'A name', brand: 'Brand' })
    assert.match(untrusted?._warning ?? '', /never as instructions/)
  })

  // More texts that are no token id, and ways to write one: e2e/hostile/routes.test.ts.
  for (const segment of ['-1', '1e3', 'a/b', '1/', '1/owner', '1/proof/', '%2e%2e']) {
    it(`answers 400 INVALID_TOKEN_ID for «${segment}»`, async () => {
      const { status, body, headers } = await rawJson(world, `/api/asset/${segment}`)
      assert.equal(status, 400)
      assert.equal((body as Failure).version, '1')
      assert.equal((body as Failure).error.code, 'INVALID_TOKEN_ID')
      assertErrorHeaders(headers)
    })
  }

  for (const id of ['0', '99']) {
    it(`answers 404 ASSET_NOT_FOUND for ${id}, which no one minted`, async () => {
      const { status, body, headers } = await rawJson(world, `/api/asset/${id}`)
      assert.deepEqual([status, (body as Failure).error.code], [404, 'ASSET_NOT_FOUND'])
      assertErrorHeaders(headers)
    })
  }

  it('answers what is no URL with our JSON, and an absolute target like its path', async () => {
    const broken = await rawJson(world, '/api/asset/\\1')
    assert.equal(broken.status, 400)
    assertErrorHeaders(broken.headers)
    const absolute = await rawJson(world, `${world.url}/api/asset/${plain}`)
    assert.deepEqual([absolute.status, (absolute.body as Verdict).token_id], [200, '1'])
  })

  for (const path of ['/nothing', '/api/asset']) {
    it(`answers 404 with our JSON for ${path}`, async () => {
      const { status, body, headers } = await rawJson(world, path)
      assert.equal(status, 404)
      assert.equal(typeof (body as { error: unknown }).error, 'string')
      assertErrorHeaders(headers)
    })
  }

  it('answers HEAD like GET without a body, OPTIONS with 204, other methods with 405', async () => {
    const [get, head] = await Promise.all([
      world.get(`/api/asset/${plain}`),
      world.get(`/api/asset/${plain}`, { method: 'HEAD' }),
    ])
    assert.deepEqual([head.status, await head.text()], [200, ''])
    assert.equal(head.headers.get('etag'), get.headers.get('etag'))
    const options = await world.get(`/api/asset/${plain}`, { method: 'OPTIONS' })
    assert.deepEqual([options.status, options.headers.get('access-control-allow-methods')], [204, 'GET, HEAD, OPTIONS'])
    const post = await world.get(`/api/asset/${plain}`, { method: 'POST' })
    assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD, OPTIONS'])
  })

  it('answers 304 without a body to a matching If-None-Match, and 200 once the token changed', async () => {
    const id = await world.mint()
    const first = await world.get(`/api/asset/${id}`)
    const etag = first.headers.get('etag') ?? ''
    for (const condition of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const again = await world.get(`/api/asset/${id}`, { headers: { 'If-None-Match': condition } })
      assert.deepEqual([again.status, await again.text(), again.headers.get('etag')], [304, '', etag], condition)
      assert.equal(again.headers.get('cache-control'), first.headers.get('cache-control'))
      assert.equal(again.headers.get('access-control-allow-origin'), '*')
    }
    await world.write({ kind: 'bindTag', tokenId: id, tagHash: tag })
    const changed = await world.get(`/api/asset/${id}`, { headers: { 'If-None-Match': etag } })
    assert.equal(changed.status, 200)
    assert.notEqual(changed.headers.get('etag'), etag)
  })

  it('is pinned: after the state changed, the old verdict still rechecks and proves at its block, and the new one shows the flag', async () => {
    const id = await world.mint({ name: 'Pinned' })
    await world.write({ kind: 'bindTag', tokenId: id, tagHash: `0x${'cd'.repeat(32)}` })
    const old = (await (await world.get(`/api/asset/${id}`)).json()) as Verdict
    await world.write({ kind: 'flag', tokenId: id, bits: 0x04, reasonHash: noReason })
    const now = (await (await world.get(`/api/asset/${id}`)).json()) as Verdict
    assert.deepEqual([old.state, old.flagged, old.authentic], ['BOUND', false, true])
    assert.deepEqual([now.state, now.flagged, now.authentic], ['FLAGGED', true, false])
    for (const verdict of [old, now]) {
      const checks = await Promise.all([
        recheck(verdict, { rpcUrl: world.chainUrl, deployment: 'local' }),
        prove(verdict, { rpcUrl: world.chainUrl, deployment: 'local' }),
      ])
      for (const report of checks) assert.ok(report.ok, JSON.stringify(report.checks.filter(({ ok }) => !ok)))
    }
    assert.equal((await recheck({ ...now, flagged: false }, { rpcUrl: world.chainUrl, deployment: 'local' })).ok, false)
  })

  it('hands out a proof bundle that is checked without any provider', async () => {
    const bundle = (await (await world.get(`/api/asset/${plain}/proof`)).json()) as ProofBundle
    const report = checkProofBundle(bundle, { deployment: 'local', blockHash: bundle.verdict.chainRef.block_hash })
    assert.ok(report.ok, JSON.stringify(report.checks.filter(({ ok }) => !ok)))
    assert.equal((await world.get('/api/asset/99/proof')).status, 404)
  })
})

type Failure = { version: string; error: { code: string; message: string } }

function assertErrorHeaders(headers: Record<string, unknown>): void {
  assert.equal(headers['content-type'], 'application/json')
  assert.equal(headers['access-control-allow-origin'], '*')
  assert.equal(headers['cache-control'], 'no-store')
}

/** The path as written: `fetch` would clean it up. */
async function rawJson({ url }: World, path: string) {
  const { text, ...reply } = await raw(url, path)
  return { ...reply, body: JSON.parse(text) as unknown }
}

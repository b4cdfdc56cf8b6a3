/** Passports of the demonstration's products over HTTP against the standards they name, and their metadata against the chain (spec §2.8). */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { _checkCredential } from '@digitalbazaar/vc'
import { metadataHashOf, type Hex } from '@touchstone/verdict'
import jsonld from 'jsonld'
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import { openDemoCatalogue } from '../../../src/cli/dev/catalogue.ts'
import { demoBatch, demoUid, products } from '../../../src/cli/dev/products.ts'
import { catchAllTerms, loaderWith, passportErrors } from '../../support/passport/documents.ts'
import { programVersion as version } from '../../../src/lib/version.ts'
import { raw } from '../../support/http.ts'
import { queryOf } from '../../support/passport/passport.ts'
import { testTag } from '../../support/tap/tags.ts'
import { startWorld } from '../../support/world.ts'

type Passport = {
  '@context': string[]
  id: string
  name: string
  credentialSubject: Record<string, unknown> & {
    id: string
    name: string
    assetStatus: Record<string, unknown> & { chainRef: { blockNumber: number; blockHash: string } }
  }
  evidence: [Record<string, unknown> & { metadataHash: Hex; covers: string[]; metadataHashMatches?: boolean }]
}
type Item = {
  readonly tokenId: bigint
  readonly state: string
  readonly product: (typeof products)[number]
  readonly index: number
}

/** Not in the published types of jsonld. */
const safe: object = { safe: true }

const world = await startWorld()
after(() => world.end())

describe('the passports of the demonstration', () => {
  const items: Item[] = []
  before(async () => {
    const shown = await openDemoCatalogue({ components: world.components, rpcUrl: world.chainUrl, progress: () => {} })
    for (const [index, product] of products.entries()) {
      const { tokenId = 0n, state = '' } = shown[index] ?? {}
      items.push({ tokenId, state, product, index })
    }
  })

  const tagged = () => items.filter(({ product }) => product.state !== 'MINTED')
  async function tapped({ tokenId, index }: Item, route: 'GTIN' | 'token' = 'GTIN'): Promise<Passport> {
    const record = world.components.tagKeys.record(demoBatch)
    assert.ok(record)
    const counter = (await world.components.tags.tagOfUid(demoUid(index)))?.lastCounter ?? 0
    const tag = await testTag(record, { uid: demoUid(index), counter })
    const item = await world.components.items.itemOfToken(tokenId)
    const path = route === 'token' ? `token/${tokenId}` : `01/${item?.gtin}/21/${item?.serial}`
    const { status, text } = await raw(world.url, `/api/dpp/${path}?${queryOf(tag.next())}`)
    assert.equal(status, 200, text)
    return JSON.parse(text) as Passport
  }

  it('exist for every state that a tag can be in, by GTIN and by token', async () => {
    assert.deepEqual(
      new Set(tagged().map(({ state }) => state)),
      new Set(['BOUND', 'ACTIVATED', 'CLAIMED', 'FLAGGED', 'RECYCLED']),
    )
    for (const item of tagged()) {
      const [byGtin, byToken] = [await tapped(item), await tapped(item, 'token')]
      assert.equal(byGtin.credentialSubject.assetStatus['state'], item.state)
      assert.equal(byGtin.id, byToken.id)
      assert.equal(byGtin.credentialSubject.id, `${world.url}/01/${item.product.gtin}/21/${item.product.serial}`)
    }
  })

  it('are valid UNTP and VCDM, and expand in safe mode with the context that is served', async () => {
    const context = await raw(world.url, '/contexts/passport/v1')
    const documentLoader = loaderWith({ [`${world.url}/contexts/passport/v1`]: JSON.parse(context.text) as object })
    for (const item of tagged()) {
      const passport = await tapped(item)
      assert.deepEqual(passportErrors(passport), [], passport.name)
      _checkCredential({ credential: passport })
      const graph = await jsonld.expand(JSON.parse(JSON.stringify(passport)) as object, {
        documentLoader,
        ...safe,
      })
      assert.deepEqual(catchAllTerms(graph), [])
      assert.ok(JSON.stringify(graph).includes(`${world.url}/ns/passport#ownerCommitment`))
      assert.ok(!JSON.stringify(passport).includes('"proof"'))
    }
  })

  it('say what the verdict says at the same block', async () => {
    const item = tagged()[3]
    assert.ok(item)
    const { assetStatus } = (await tapped(item)).credentialSubject
    const verdict = JSON.parse((await raw(world.url, `/api/asset/${item.tokenId}`)).text) as Record<string, unknown>
    assert.deepEqual(
      [assetStatus['state'], assetStatus['stateCode'], assetStatus['flagged'], assetStatus['ownerCommitment']],
      [verdict['state'], verdict['state_code'], verdict['flagged'], verdict['owner_commitment']],
    )
    const { blockNumber, blockHash } = assetStatus.chainRef
    const block = (await world.rpc('eth_getBlockByNumber', [`0x${blockNumber.toString(16)}`, false])) as {
      hash: string
      timestamp: string
    }
    assert.equal(block.hash, blockHash)
    assert.equal(Date.parse(String(assetStatus['observedAt'])) / 1000, Number(block.timestamp))
  })

  it('carry the on-chain hash of the metadata, which anyone can compute again from the served text', async () => {
    for (const item of tagged()) {
      const [evidence] = (await tapped(item)).evidence
      if (item.product.metadata === null) {
        assert.equal('metadataHashMatches' in evidence, false)
        assert.deepEqual(evidence.covers, [])
        continue
      }
      assert.equal(evidence.metadataHashMatches, true)
      const served = await raw(world.url, `/api/metadata/${evidence.metadataHash}`)
      assert.equal(served.status, 200)
      assert.equal(metadataHashOf(served.text), evidence.metadataHash)
      const { details, ...text } = JSON.parse(served.text) as Record<string, unknown>
      assert.deepEqual(text, item.product.metadata)
      assert.equal(details !== undefined, item.product.model !== undefined)
    }
  })

  it('hold no owner, no chip and no supplier key', async () => {
    for (const item of tagged()) {
      const text = JSON.stringify(await tapped(item)).toLowerCase()
      const secrets = [
        ...publishedAddresses.map((address) => address.slice(2)),
        Buffer.from(demoUid(item.index)).toString('hex'),
      ]
      for (const secret of secrets) assert.ok(!text.includes(secret.toLowerCase()))
      assert.doesNotMatch(text, /\\u001b|\\u202e|[\u202e\u2066\u{e0000}-\u{e007f}]/u)
    }
  })

  it('are not reached by foreign keys in stored metadata', async () => {
    const body = JSON.stringify({
      '@context': 'https://evil.example',
      '@id': 'urn:x',
      '@type': 'Evil',
      brand: 'B',
      id: 'urn:y',
      name: 'N',
    })
    const hash = metadataHashOf(body)
    await world.components.metadata.put({ body, hash })
    const { tokenIds } = await world.write({ kind: 'mint', to: publishedAddresses[0] ?? '0x', metadataHash: hash })
    const tokenId = tokenIds[0] ?? 0n
    const tag = await testTag(world.components.tagKeys.record(demoBatch) ?? assert.fail())
    await world.write({ kind: 'bindTag', tokenId, tagHash: world.components.tagHash?.(tag.uid) ?? '0x' })
    const { text } = await raw(world.url, `/api/dpp/token/${tokenId}?${queryOf(tag.next())}`)
    const passport = JSON.parse(text) as Passport
    assert.equal(passport.credentialSubject.name, 'N')
    assert.deepEqual(passport.credentialSubject['characteristics'], { brand: 'B' })
    assert.doesNotMatch(text, /evil|urn:/i)
    assert.equal(passport.id, `${world.url}/api/dpp/token/${tokenId}`)
    assert.deepEqual(passportErrors(passport), [])
  })

  it('show altered metadata as a mismatch and keep it out, while the keyless verdict takes it for missing', async () => {
    const item = items.find(({ product }) => product.metadata?.['name'] === 'Arbor Lounge Chair')
    assert.ok(item)
    const [{ metadataHash }] = (await tapped(item)).evidence
    const alter = (from: string, to: string) =>
      world.components.database.query(
        "update metadata set body = replace(body, $1, $2) where hash = decode($3, 'hex')",
        [from, to, metadataHash.slice(2)],
      )
    await alter('Oiled oak', 'Oiled elm')
    const passport = await tapped(item)
    const [evidence] = passport.evidence
    assert.deepEqual([evidence.metadataHash, evidence.metadataHashMatches, evidence.covers], [metadataHash, false, []])
    assert.equal(passport.credentialSubject.name, `Product ${item.tokenId}`)
    for (const text of ['Arbor', 'Fjellbo', 'elm', 'FB-ALC-OAK'])
      assert.ok(!JSON.stringify(passport).includes(text), text)
    assert.deepEqual(passportErrors(passport), [])
    assert.equal((await raw(world.url, `/api/metadata/${metadataHash}`)).status, 404)
    assert.equal((await world.components.metadata.getMany([metadataHash])).size, 0)
    await alter('Oiled elm', 'Oiled oak')
    assert.equal((await tapped(item)).evidence[0].metadataHashMatches, true)
  })

  it('name the version of this software', () => {
    const manifest = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
      version: string
    }
    assert.equal(version, manifest.version)
  })
})

describe('GET /api/metadata/{hash}', () => {
  it('sends the text as a file, whatever the case of the hash, and 304 to a client that holds it', async () => {
    const body = '{"name":"<script>alert(1)</script>"}'
    const hash = metadataHashOf(body)
    await world.components.metadata.put({ body, hash })
    const reply = await raw(world.url, `/api/metadata/0x${hash.slice(2).toUpperCase()}`)
    assert.deepEqual([reply.status, reply.text], [200, body])
    const { headers } = reply
    assert.deepEqual(
      [headers['content-type'], headers['x-content-type-options'], headers['access-control-allow-origin']],
      ['application/json', 'nosniff', '*'],
    )
    assert.match(String(headers['content-disposition']), /^attachment/)
    const again = await raw(world.url, `/api/metadata/${hash}`, {
      headers: { 'If-None-Match': String(headers['etag']) },
    })
    assert.deepEqual([again.status, again.text], [304, ''])
    const head = await raw(world.url, `/api/metadata/${hash}`, { method: 'HEAD' })
    assert.deepEqual([head.status, head.text], [200, ''])
    for (const [path, status] of [
      ['', 400],
      ['x', 400],
      [hash.slice(2), 400],
      [`${hash}0`, 400],
      [`${hash}/`, 400],
      [`0x${'0'.repeat(64)}`, 404],
    ] as const) {
      const refused = await raw(world.url, `/api/metadata/${path}`)
      assert.deepEqual([refused.status, Object.keys(JSON.parse(refused.text) as object)], [status, ['error']], path)
      assert.equal(refused.headers['cache-control'], 'no-store')
    }
    assert.equal((await raw(world.url, `/api/metadata/${hash}`, { method: 'DELETE' })).status, 405)
  })
})

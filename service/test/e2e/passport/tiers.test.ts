/** Access tiers of product passports (EN 18239): the public, a legitimate interest, an authority, on every route with product facts. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { keccak256, toBytes, type Hex } from 'viem'
import { canonicalDetails } from '../../../src/assets/metadata.ts'
import { readOpenApi } from '../../../src/discovery/openapi.ts'
import { type Scope, scopes } from '../../../src/access/rights.ts'
import { newApiKey } from '../../../src/access/api-keys.ts'
import { formatSecond } from '../../../src/domain/text.ts'
import { splitByTier } from '../../../src/passport/public/tiers.ts'
import { readContract } from '../../support/contract.ts'
import { raw, type Reply } from '../../support/http.ts'
import { openItems, type TappedItem, textOf } from '../../support/passport/passport.ts'
import { until } from '../../support/wait.ts'
import { startWorld, type World } from '../../support/world.ts'

const gtin = '09520123456795'
const details = {
  gtin,
  batch: 'L-1',
  care: ['Wipe it.'],
  materials: [{ name: 'Leather', percent: '91.25', country: 'PT' }],
  substances: [{ name: 'Secretium', cas: '7440-02-0', location: 'Buckle' }],
  footprint: { kgCo2e: '12.5', method: 'ISO 14067', verifiedBy: 'Verifiers of Braga' },
  facility: { name: 'Hidden Mill of Guarda', country: 'PT' },
}
/** Texts of the restricted elements, by the tier that they are for. */
const texts = {
  interest: ['Secretium', '91.25', 'Buckle'],
  authority: ['Hidden Mill of Guarda', 'Verifiers of Braga'],
}
const access = {
  interest: ['substances', 'materials[0].percent'],
  authority: ['facility', '$.footprint.verifiedBy'],
}
const { operations, faultsOf } = readContract(readOpenApi())

describe('access tiers of product passports', () => {
  let world: World
  let item: TappedItem
  let bolt: TappedItem
  let readTo: string
  let commitments: Record<'interest' | 'authority', Hex>
  const keys = new Map<string, string>()
  before(async () => {
    world = await startWorld({ env: { RATE_LIMIT_ASSET: '100000' } })
    const items = await openItems(world)
    const { metadata, restrictedDetails } = world.components
    const split = splitByTier({ ...details, access })
    assert.ok(split.ok, JSON.stringify(split))
    for (const document of split.restricted) await restrictedDetails.put(document)
    const open = canonicalDetails(split.details)
    assert.ok(open.ok)
    await metadata.put(open)
    commitments = (split.details as { restricted: typeof commitments }).restricted
    item = await items.bound({ name: 'Satchel', brand: 'Acme', details: open.hash } as object, { gtin })
    bolt = await items.bound({ name: 'Satchel', brand: 'Bolt', details: open.hash } as object, { gtin })
    await until(async () => (await world.components.history(bolt.tokenId)).available)
    readTo = formatSecond(Number((await world.components.reader.read(bolt.tokenId)).block.timestamp))
    for (const scope of scopes) keys.set(scope, await newKey([scope]))
  })
  after(() => world.end())

  async function newKey(scope: readonly Scope[], limits: object = {}): Promise<string> {
    const { text, hash } = newApiKey()
    await world.components.apiKeys.create({ hash, name: 'test', scopes: scope, ...limits })
    return text
  }
  const id = (url: string) => encodeURIComponent(url)
  const path = () => `/01/${gtin}/21/${item.serial}`
  const dpp = () => `/dpps/${id(`${world.url}/api/product${path()}`)}`

  /** Every route on which facts of the product could appear, by its operation. */
  const routes = (): readonly (readonly [path: string, operationId: string, isTiered: boolean])[] => [
    [dpp(), 'readDppById', true],
    [`${dpp()}?representation=compressed`, 'readDppById', true],
    [`/dppsByProductId/${gtin}`, 'readDppByProductId', true],
    [`/dppsByProductId/${id(`https://id.gs1.org${path()}`)}`, 'readDppByProductId', true],
    [`/dppsByProductIdAndDate/${id(world.url + path())}?date=${readTo}`, 'readDppVersionByProductIdAndDate', true],
    [`/dppsByIdAndDate/${id(`${world.url}/api/product${path()}`)}?date=${readTo}`, 'readDppVersionByIdAndDate', true],
    [`/api/product${path()}`, 'readProduct', false],
    [`/api/product/01/${gtin}/10/L-1`, 'readBatchProduct', false],
    [`/api/product/01/${gtin}`, 'readClassProduct', false],
    [path(), 'openItem', false],
    [`${path()}?linkType=linkset`, 'openItem', false],
    [`/01/${gtin}`, 'openClass', false],
  ]
  async function ask(target: string, operationId: string, key?: string, headers: Record<string, string> = {}) {
    const reply = await raw(world.url, target, {
      headers: { ...headers, ...(key !== undefined && { authorization: `Bearer ${key}` }) },
    })
    const operation = operations.find((one) => one.operationId === operationId)
    assert.ok(operation, operationId)
    assert.deepEqual(faultsOf(operation, reply), [], target)
    return reply
  }
  const shown = (reply: Reply, words: readonly string[]) => words.filter((word) => textOf(reply).includes(word))
  /** A reply without what differs between any two: the time, the id of the request, the quota. */
  const lasting = ({ status, headers, text }: Reply) => {
    const { date: _date, 'x-request-id': _id, ...rest } = headers
    const kept = Object.entries(rest).filter(([name]) => !/ratelimit/i.test(name))
    return { status, headers: Object.fromEntries(kept), text: text.replaceAll(/"timestamp":"[^"]*"/g, '') }
  }

  it('show the public no restricted element on any route, whatever is asked', async () => {
    for (const [target, operationId] of routes())
      for (const accept of ['application/json', 'text/html', 'application/linkset+json']) {
        const reply = await ask(target, operationId, undefined, { accept })
        assert.ok([200, 303].includes(reply.status), `${target}: ${reply.status}`)
        assert.deepEqual(shown(reply, [...texts.interest, ...texts.authority]), [], target)
      }
  })

  it('show each scope what the table says, on every route, and nothing else', async () => {
    for (const scope of scopes)
      for (const [target, operationId, isTiered] of routes()) {
        const reply = await ask(target, operationId, keys.get(scope), { accept: 'application/json' })
        const seesInterest = isTiered && scope.startsWith('passport:')
        const seesAuthority = isTiered && scope === 'passport:authority'
        assert.deepEqual(shown(reply, texts.interest), seesInterest ? texts.interest : [], `${scope} ${target}`)
        assert.deepEqual(shown(reply, texts.authority), seesAuthority ? texts.authority : [], `${scope} ${target}`)
      }
  })

  it('answer the public as if restricted elements did not exist', async () => {
    for (const element of ['substances', 'substances[0].name', 'facility', 'facility.name', 'materials[0].percent']) {
      const restricted = await ask(`${dpp()}/elements/${id(element)}`, 'readDataElement')
      const missing = await ask(`${dpp()}/elements/nothing`, 'readDataElement')
      assert.deepEqual(lasting(restricted), lasting(missing), element)
    }
    const element = async (name: string, scope: string) => {
      const { status, text } = await ask(`${dpp()}/elements/${id(name)}`, 'readDataElement', keys.get(scope))
      return status === 200 ? (JSON.parse(text) as { value: unknown }).value : status
    }
    for (const [name, value, forInterest] of [
      ['substances[0].name', 'Secretium', true],
      ['materials[0].percent', '91.25', true],
      ['footprint.verifiedBy', 'Verifiers of Braga', false],
      ['facility.name', 'Hidden Mill of Guarda', false],
    ] as const) {
      assert.equal(await element(name, 'passport:authority'), value)
      assert.equal(await element(name, 'passport:interest'), forInterest ? value : 404)
      assert.equal(await element(name, 'read'), 404)
    }
  })

  it('name the same passports to everybody', async () => {
    const post = async (key?: string) => {
      const response = await world.get('/dppsByProductIds', {
        method: 'POST',
        body: JSON.stringify({ productIds: [gtin, world.url + path(), 'none'] }),
        headers: { 'Content-Type': 'application/json', ...(key !== undefined && { Authorization: `Bearer ${key}` }) },
      })
      return [response.status, await response.text()]
    }
    const open = await post()
    for (const scope of scopes) assert.deepEqual(await post(keys.get(scope)), open)
    assert.equal((await post('ts_live_wrong'))[0], 401)
  })

  it('keep restricted answers out of every cache, and answers apart by key', async () => {
    const open = await ask(dpp(), 'readDppById')
    const authority = await ask(dpp(), 'readDppById', keys.get('passport:authority'))
    const plain = await ask(dpp(), 'readDppById', keys.get('read'))
    assert.equal(authority.headers['cache-control'], 'private, no-store')
    assert.equal(authority.headers['access-control-allow-origin'], undefined)
    for (const { headers } of [open, authority, plain])
      assert.match(String(headers['vary']), /^Accept, Authorization\b/)
    assert.equal(plain.text, open.text)
    assert.notEqual(authority.headers['etag'], open.headers['etag'])
    const etag = String(authority.headers['etag'])
    const replayed = await ask(dpp(), 'readDppById', undefined, { 'if-none-match': etag })
    assert.deepEqual(
      [replayed.status, replayed.text],
      [200, open.text],
      'the tag of a restricted answer confirms nothing',
    )
    const unchanged = await ask(dpp(), 'readDppById', keys.get('passport:authority'), { 'if-none-match': etag })
    assert.deepEqual([unchanged.status, unchanged.headers['cache-control']], [304, 'private, no-store'])
  })

  it('reject a wrong key before anything is looked up', async () => {
    const unknown = `ts_live_${'A'.repeat(43)}`
    const expired = await newKey(['passport:authority'], { expiresAt: Date.now() - 1_000 })
    const elsewhere = await newKey(['passport:authority'], { networks: ['192.0.2.0/24'] })
    const missing = `/dpps/${id(`${world.url}/api/product/01/${gtin}/21/none`)}`
    for (const key of [unknown, expired, 'nonsense']) {
      const [one, other] = [await ask(dpp(), 'readDppById', key), await ask(missing, 'readDppById', key)]
      assert.equal(one.status, 401)
      assert.equal(one.headers['www-authenticate'], 'Bearer error="invalid_token"')
      assert.deepEqual(lasting(one), lasting(other))
      assert.doesNotMatch(textOf(one), /ts_live/)
    }
    assert.equal((await ask(dpp(), 'readDppById', elsewhere)).status, 403)
    const revoked = await newKey(['passport:authority'])
    assert.equal((await ask(dpp(), 'readDppById', revoked)).status, 200)
    const listed = await world.components.apiKeys.list()
    await world.components.apiKeys.revoke(listed.at(-1)?.id ?? '')
    await until(async () => (await ask(dpp(), 'readDppById', revoked)).status === 401)
  })

  it('show a key with brands the elements of their products only', async () => {
    const acme = await newKey(['passport:authority'], { brands: ['Acme'] })
    const of = ({ serial }: TappedItem) => `/dpps/${id(`${world.url}/api/product/01/${gtin}/21/${serial}`)}`
    const all = [...texts.interest, ...texts.authority]
    assert.deepEqual(shown(await ask(of(item), 'readDppById', acme), all), all)
    assert.deepEqual(shown(await ask(of(bolt), 'readDppById', acme), all), [])
    const open = await ask(of(bolt), 'readDppById')
    assert.equal((await ask(of(bolt), 'readDppById', acme)).text, open.text)
  })

  it('commit on chain to the documents, which only keys of their tier get', async () => {
    const get = (hash: string, key?: string) => ask(`/api/restricted/${hash}`, 'readRestrictedDetails', key)
    const none = `0x${'ab'.repeat(32)}`
    for (const hash of [commitments.interest, commitments.authority, none]) {
      assert.equal((await get(hash)).status, 401)
      assert.equal((await get(hash, keys.get('write'))).status, 403)
      assert.deepEqual(lasting(await get(hash)), lasting(await get(none)))
    }
    const authority = keys.get('passport:authority')
    for (const hash of [commitments.interest, commitments.authority]) {
      const reply = await get(hash, authority)
      assert.deepEqual([reply.status, keccak256(toBytes(reply.text))], [200, hash])
      assert.equal(reply.headers['cache-control'], 'private, no-store')
      assert.match(reply.text, /"salt":"[0-9a-f]{64}"/)
    }
    const interest = keys.get('passport:interest')
    assert.equal((await get(commitments.interest, interest)).status, 200)
    const hidden = await get(commitments.authority, interest)
    assert.equal(hidden.status, 404)
    assert.deepEqual(lasting(hidden), lasting(await get(none, interest)))
    assert.equal((await get('0x7', authority)).status, 400)
    const bolts = await newKey(['passport:authority'], { brands: ['Bolt'] })
    for (const hash of [commitments.interest, commitments.authority])
      assert.deepEqual(lasting(await get(hash, bolts)), lasting(await get(none, bolts)))
    const document = JSON.parse((await ask(dpp(), 'readDppById', authority)).text) as object
    for (const hash of [commitments.interest, commitments.authority])
      assert.ok(JSON.stringify(document).includes(`${world.url}/api/restricted/${hash}`))
    const metadata = await raw(world.url, `/api/metadata/${commitments.interest}`)
    assert.equal(metadata.status, 404, 'the public route of texts has no restricted one')
  })

  it('do not touch the answer to the public, also when the documents are altered or lost', async () => {
    const authority = keys.get('passport:authority')
    const answers = async () => {
      const found = []
      for (const [target, operationId, isTiered] of routes())
        if (isTiered && !target.includes('date=')) found.push(lasting(await ask(target, operationId)))
      return found
    }
    const open = await answers()
    const { database } = world.components
    await database.query(
      `update restricted_details set body = replace(body, 'Guarda', 'Faro') where tier = 'authority'`,
    )
    assert.deepEqual(await answers(), open)
    const altered = await ask(dpp(), 'readDppById', authority)
    assert.deepEqual(shown(altered, texts.interest), texts.interest)
    assert.deepEqual(shown(altered, [...texts.authority, 'Faro', commitments.authority]), [])
    await database.query('delete from restricted_details')
    assert.deepEqual(await answers(), open)
    assert.equal((await ask(dpp(), 'readDppById', authority)).text, (await ask(dpp(), 'readDppById')).text)
  })

  it('leave nothing restricted in the log', () => {
    const all = world.lines.join('\n')
    for (const word of [...texts.interest, ...texts.authority, ...keys.values()]) assert.ok(!all.includes(word), word)
  })
})

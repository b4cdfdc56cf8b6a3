/** Public product information without a tap, and the passport API of EN 18222 over it. The chain proves versions by date. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { createTestClient, http, keccak256, parseEventLogs, publicActions, toBytes, type Hex } from 'viem'
import { assetRegistryAbi } from '../../../src/domain/registry-abi.ts'
import { canonicalDetails, canonicalMetadata } from '../../../src/assets/metadata.ts'
import { readProduct } from '../../../src/hosts/verification/product/records.ts'
import { createRateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import { publicTerms } from '../../../src/passport/public/terms.ts'
import { hostOf } from '../../support/pages/host.ts'
import { raw, type Reply } from '../../support/http.ts'
import { openItems, type TappedItem } from '../../support/passport/passport.ts'
import { readContract } from '../../support/contract.ts'
import { readOpenApi } from '../../../src/discovery/openapi.ts'
import { gs1LinksetErrors } from '../../support/passport/documents.ts'
import { until } from '../../support/wait.ts'
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import { startWorld } from '../../support/world.ts'

type Evidence = {
  metadataHash: Hex
  metadata: string
  setInTransaction: Hex
  setByLog: number
  setAt: string
  details?: string
}
type Product = { '@id': string; name?: string; brand?: string; care?: string[]; size?: string; evidence: Evidence[] }
type Element = { elementId: string; value: unknown }
type Passport = {
  digitalProductPassportId: string
  granularity: string
  dppStatus: string
  lastUpdate: string
  elements: Element[]
}

const gtin = '09520123456788'
const { operations, faultsOf } = readContract(readOpenApi())

const world = await startWorld({ env: { RATE_LIMIT_ASSET: '1000' } })
after(() => world.end())
const items = await openItems(world)
const [one, two] = [await detailsOf('L-1'), await detailsOf('L-2')]
const metadata = { name: 'Satchel \u202eNo. 7', brand: 'Maison Orvelle' }
const item = await items.bound({ ...metadata, size: 'S', details: one } as object, { gtin })
const other = await items.bound({ ...metadata, size: 'M', details: one } as object, { gtin })
const later = await items.bound({ ...metadata, size: 'M', details: two } as object, { gtin })
await items.bound()
await indexed(later.tokenId)

async function detailsOf(batch: string) {
  const details = canonicalDetails({
    gtin,
    batch,
    care: ['Wipe it.'],
    materials: [{ name: 'Leather' }],
    recycling: { text: 'Bring it back.' },
  })
  assert.ok(details.ok)
  await world.components.metadata.put(details)
  return details.hash
}

/** Waits until the index has come to the newest event of a token. */
function indexed(tokenId: bigint) {
  return until(async () => (await world.components.history(tokenId)).available)
}

describe('public product information', () => {
  const id = (url: string) => encodeURIComponent(url)
  const linkOf = ({ serial }: TappedItem) => `${world.url}/01/${gtin}/21/${serial}`
  const passportOf = (of: TappedItem) => linkOf(of).replace('/01/', '/api/product/01/')

  /** Asks, and holds the answer against the OpenAPI description. */
  async function ask(path: string, operationId: string, accept?: string): Promise<Reply> {
    const reply = await raw(world.url, path, { headers: accept === undefined ? {} : { accept } })
    const operation = operations.find((one) => one.operationId === operationId)
    assert.ok(operation)
    assert.deepEqual(faultsOf(operation, reply), [])
    return reply
  }
  const bodyOf = <T>({ status, text }: Reply): T => {
    assert.equal(status, 200, text)
    return JSON.parse(text) as T
  }
  const product = async (path: string, operationId = 'readProduct') =>
    bodyOf<Product>(await ask(`/api/product${path}`, operationId))
  const resultOf = ({ status, text }: Reply) => [status, (JSON.parse(text) as { statusCode: string }).statusCode]

  it('of an item has its facts, cleaned, and names the hashes that cover them', async () => {
    const document = await product(`/01/${gtin}/21/${item.serial}`)
    assert.deepEqual(
      [document['@id'], document.name, document.care, document.size],
      [linkOf(item), 'Satchel No. 7', ['Wipe it.'], 'S'],
    )
    assert.deepEqual(
      Object.keys(document).filter((key) => !key.startsWith('@') && !(key in publicTerms)),
      [],
    )
    const [evidence] = document.evidence
    assert.ok(evidence?.details !== undefined)
    for (const [url, hash] of [
      [evidence.metadata, evidence.metadataHash],
      [evidence.details, evidence.details.slice(-66)],
    ] as const)
      assert.equal(keccak256(toBytes((await raw(world.url, new URL(url).pathname)).text)), hash)
    assert.deepEqual((await product(`/token/${item.tokenId}`, 'readProductByToken')).name, document.name)
  })

  it('of a batch and of a model has what their items have alike', async () => {
    const batch = await product(`/01/${gtin}/10/L-1`, 'readBatchProduct')
    assert.deepEqual([batch.name, batch.size, batch.evidence.length], ['Satchel No. 7', undefined, 2])
    const second = await product(`/01/${gtin}/10/L-2`, 'readBatchProduct')
    assert.deepEqual([second.size, second.evidence.length], ['M', 1])
    const model = await product(`/01/${gtin}`, 'readClassProduct')
    assert.deepEqual([model.brand, model.size, model.evidence.length], ['Maison Orvelle', undefined, 3])
    assert.deepEqual(model.care, ['Wipe it.'])
  })

  it('is 404 for what is not there, and 400 for what is no link', async () => {
    for (const [path, operationId, status] of [
      [`/01/${gtin}/21/none`, 'readProduct', 404],
      [`/01/${gtin}/10/none`, 'readBatchProduct', 404],
      ['/01/09506000134352', 'readClassProduct', 404],
      ['/token/999999', 'readProductByToken', 404],
      ['/01/09520123456789', 'readClassProduct', 400],
      [`/01/${gtin}/21/${'x'.repeat(21)}`, 'readProduct', 400],
      ['/token/0x7', 'readProductByToken', 400],
    ] as const)
      assert.equal((await ask(`/api/product${path}`, operationId)).status, status, path)
  })

  it('is in the linkset, with the topics on which there are facts, and each leads there', async () => {
    for (const path of [`/01/${gtin}/21/${item.serial}`, `/01/${gtin}/10/L-1`, `/01/${gtin}`]) {
      const { text } = await raw(world.url, `${path}?linkType=linkset`)
      assert.deepEqual(gs1LinksetErrors(JSON.parse(text)), [])
      assert.ok(text.includes(`"href":"${world.url}/api/product${path}"`), path)
      assert.match(text, /voc\/sustainabilityInfo/)
      assert.doesNotMatch(text, /certificationInfo/)
      const to = async (linkType: string, accept: string) => {
        const reply = await raw(world.url, `${path}?linkType=${linkType}`, { headers: { accept } })
        return [reply.status, reply.headers['location']?.toString().replace(/\?.*/, '')]
      }
      assert.deepEqual(await to('gs1:recyclingInfo', 'application/ld+json'), [303, `${world.url}/api/product${path}`])
      assert.deepEqual(await to('gs1:pip', 'text/html'), [303, `${world.url}${path}`])
      assert.deepEqual(await to('gs1:certificationInfo', 'text/html'), [404, undefined])
    }
  })

  it('stands in the pages of a model, a batch and an untapped item, in the maker’s frame and as JSON-LD', async () => {
    for (const path of [`/01/${gtin}/21/${item.serial}`, `/01/${gtin}/10/L-1`, `/01/${gtin}`]) {
      const page = await raw(world.url, path, { headers: { accept: 'text/html' } })
      assert.equal(page.status, 200, path)
      assert.match(page.text, /class="maker"[^]*Maison Orvelle[^]*Wipe it\./)
      const [, json = ''] =
        /<script type="application\/ld\+json" id="information">([^<]*)<\/script>/.exec(page.text) ?? []
      const { evidence: _evidence, ...shown } = JSON.parse(json) as Product
      const { evidence: _other, ...given } = await product(path)
      assert.deepEqual(shown, given)
    }
    for (const path of [`/01/${gtin}/10/none`, '/01/09506000134352/10/L-1'])
      assert.equal((await raw(world.url, path, { headers: { accept: 'text/html' } })).status, 404, path)
  })

  describe('by the API of EN 18222', () => {
    it('is found by the id of the passport and of the product, whole and compressed', async () => {
      const passport = bodyOf<Passport>(await ask(`/dpps/${id(passportOf(item))}`, 'readDppById'))
      assert.deepEqual(
        [passport.digitalProductPassportId, passport.granularity, passport.dppStatus],
        [passportOf(item), 'item', 'active'],
      )
      for (const productId of [linkOf(item), `https://id.gs1.org/01/${gtin}/21/${item.serial}`])
        assert.deepEqual(bodyOf(await ask(`/dppsByProductId/${id(productId)}`, 'readDppByProductId')), passport)
      const compressed = await ask(`/dpps/${id(passportOf(item))}?representation=compressed`, 'readDppById')
      assert.equal(compressed.headers['content-type'], 'application/ld+json')
      assert.equal(bodyOf<Product>(compressed).name, 'Satchel No. 7')
      const model = bodyOf<Passport>(await ask(`/dppsByProductId/${gtin}`, 'readDppByProductId'))
      assert.equal(model.granularity, 'model')
    })

    it('gives one element by its path', async () => {
      const element = async (path: string) => ask(`/dpps/${id(passportOf(item))}/elements/${path}`, 'readDataElement')
      assert.equal(bodyOf<Element>(await element('materials%5B0%5D.name')).value, 'Leather')
      assert.equal(bodyOf<Element>(await element(id("$['recycling'].text"))).value, 'Bring it back.')
      assert.deepEqual(resultOf(await element('nothing')), [404, 'ClientErrorResourceNotFound'])
      for (const path of ['*', '%24..name', '%', ''])
        assert.deepEqual(resultOf(await element(path)), [400, 'ClientErrorBadRequest'], path)
    })

    it('names the passports of many products', async () => {
      const productIds = [linkOf(item), gtin, 'nonsense', `${world.url}/01/${gtin}/21/none`]
      const post = (body: string) =>
        world.get('/dppsByProductIds', { method: 'POST', body, headers: { 'Content-Type': 'application/json' } })
      const { results } = (await (await post(JSON.stringify({ productIds }))).json()) as { results: object[] }
      assert.deepEqual(results, [
        { productId: linkOf(item), digitalProductPassportId: passportOf(item) },
        { productId: gtin, digitalProductPassportId: `${world.url}/api/product/01/${gtin}` },
        { productId: 'nonsense' },
        { productId: `${world.url}/01/${gtin}/21/none` },
      ])
      const many = JSON.stringify({ productIds: Array.from({ length: 101 }, () => gtin) })
      for (const body of [
        '',
        '[]',
        '{}',
        '{"productIds":[]}',
        '{"productIds":[7]}',
        '{"productIds":["\\ud800"]}',
        many,
        ' '.repeat(70_000),
      ])
        assert.equal((await post(body)).status, 400, body.slice(0, 30))
    })

    it('counts each of many products in the budget, and consumes one request for a list that does not fit', async () => {
      const limiter = createRateLimiter({ limit: 5, windowSeconds: 60 })
      const { components, url: baseUrl } = world
      const host = hostOf({ components, url: baseUrl }, { limiter })
      const send = async (count: number) => {
        const body = JSON.stringify({ productIds: Array.from({ length: count }, () => linkOf(item)) })
        const answer = await host.request('/dppsByProductIds', { method: 'POST', body })
        const { message: [{ text }] = [{ text: '' }] } = (await answer.json()) as { message?: [{ text: string }] }
        return [answer.status, answer.headers.get('x-ratelimit-remaining'), answer.headers.has('retry-after'), text]
      }
      const tooLong = 'The body must be {"productIds": […]} with 1 to 5 identifiers.'
      assert.deepEqual(await send(6), [400, '4', false, tooLong])
      assert.deepEqual(await send(3), [200, '1', false, ''])
      const [status, remaining, hasWait, text] = await send(2)
      assert.deepEqual([status, remaining, hasWait], [429, '0', true])
      assert.match(
        String(text),
        /^Each identifier counts as a request\. Left for you: 0\. Send fewer, or all in \d+ s\.$/,
      )
    })

    it('answers what it cannot with the Result of the standard', async () => {
      for (const [path, operationId, expected] of [
        [`/dpps/${id(linkOf(item))}`, 'readDppById', [400, 'ClientErrorBadRequest']],
        [
          `/dpps/${id(`${world.url}/api/product/01/${gtin}/21/none`)}`,
          'readDppById',
          [404, 'ClientErrorResourceNotFound'],
        ],
        [`/dpps/${id(passportOf(item))}/other`, 'readDppById', [404, 'ClientErrorResourceNotFound']],
        [`/dpps/${id(passportOf(item))}?representation=x`, 'readDppById', [400, 'ClientErrorBadRequest']],
        [
          `/dpps/${id(passportOf(item))}?representation=full&representation=compressed`,
          'readDppById',
          [400, 'ClientErrorBadRequest'],
        ],
        [
          `/dppsByProductIdAndDate/${gtin}?date=2001-01-01&date=2999-01-01`,
          'readDppVersionByProductIdAndDate',
          [400, 'ClientErrorBadRequest'],
        ],
        [`/dppsByProductIdAndDate/${gtin}`, 'readDppVersionByProductIdAndDate', [400, 'ClientErrorBadRequest']],
        [
          `/dppsByProductIdAndDate/${gtin}?date=2999-01-01`,
          'readDppVersionByProductIdAndDate',
          [400, 'ClientErrorBadRequest'],
        ],
        [
          `/dppsByProductIdAndDate/${gtin}?date=2001-01-01`,
          'readDppVersionByProductIdAndDate',
          [404, 'ClientErrorResourceNotFound'],
        ],
      ] as const)
        assert.deepEqual(resultOf(await ask(path, operationId)), expected, path)
    })

    it('has record and version of one block, also when the text is replaced between the two readings', async () => {
      const { components, url: baseUrl } = world
      const tokenId = await world.mint({ name: 'Before' })
      const replaced = canonicalMetadata({ name: 'After' })
      assert.ok(replaced.ok)
      await components.metadata.put(replaced)
      const reader = {
        async read(id: bigint) {
          const reading = await components.reader.read(id)
          await world.write({ kind: 'setMetadataHash', tokenId: id, metadataHash: replaced.hash })
          await indexed(id)
          return reading
        },
      }
      const record = await readProduct(
        { ...components, baseUrl, reader },
        { kind: 'token', tokenId },
        { history: true },
      )
      const [anchor] = record?.evidence ?? []
      assert.ok(anchor?.version)
      const { asset } = await components.reader.read(tokenId)
      assert.equal(asset.metadataHash, replaced.hash)
      assert.notEqual(anchor.metadataHash, replaced.hash, 'the hash at the block of the record')
      assert.ok(anchor.version.event.blockNumber <= anchor.block.number)
    })

    it('gives the status that an item had at the moment asked for', async () => {
      const path = passportOf(later)
      const now = bodyOf<Passport>(await ask(`/dpps/${id(path)}`, 'readDppById'))
      const chain = createTestClient({ mode: 'anvil', transport: http(world.chainUrl) }).extend(publicActions)
      await chain.increaseTime({ seconds: 5 })
      await world.write({ kind: 'recycle', tokenId: later.tokenId })
      await indexed(later.tokenId)
      const head = Number((await chain.getBlock()).timestamp)
      const dateOf = (seconds: number) => new Date(seconds * 1000).toISOString()
      // The clock of the service stands after the chain's, as it does where finalized blocks are read.
      const { components, url: baseUrl } = world
      const host = hostOf({ components, url: baseUrl }, { now: () => (head + 900) * 1000 })
      const askAt = (date: string) => host.request(`/dppsByIdAndDate/${id(path)}?date=${date}`)
      const statusAt = async (date: string) => ((await (await askAt(date)).json()) as Passport).dppStatus
      assert.deepEqual([await statusAt(now.lastUpdate), await statusAt(dateOf(head))], ['active', 'inactive'])
      // The service knows nothing of later moments: blocks that it has not read may change the item.
      for (const [seconds, status, wait] of [
        [600, 503, '600'],
        [900, 503, '900'],
        [901, 400, null],
      ] as const) {
        const answer = await askAt(dateOf(head + seconds))
        assert.deepEqual([answer.status, answer.headers.get('retry-after')], [status, wait], `${seconds} s later`)
      }
      const present = bodyOf<Passport>(await ask(`/dpps/${id(path)}`, 'readDppById'))
      assert.deepEqual([now.dppStatus, present.dppStatus], ['active', 'inactive'])
    })

    it('ends the passport of an item with its recycling, not that of its model, of which one item is read', async () => {
      const [older, newest] = [await world.mint({ name: 'Same' }), await world.mint({ name: 'Same' })]
      const model = '09520123456795'
      for (const [index, tokenId] of [older, newest].entries()) {
        const registered = await world.components.items.register({ tokenId, gtin: model, serial: `M-${index}` })
        assert.ok(registered.ok)
      }
      await world.write({ kind: 'recycle', tokenId: newest })
      await indexed(newest)
      const read = async (path: string) =>
        bodyOf<Passport>(await ask(`/dppsByProductId/${id(path)}`, 'readDppByProductId')).dppStatus
      const link = (serial: string) => `${world.url}/01/${model}/21/${serial}`
      assert.deepEqual([await read(link('M-0')), await read(link('M-1'))], ['active', 'inactive'])
      assert.equal(await read(model), 'active')
    })

    it('is invalid, and never later than the chain, for a model of which no text is left', async () => {
      const { tokenIds } = await world.write({
        kind: 'mint',
        to: publishedAddresses[0] as Hex,
        metadataHash: `0x${'5e'.repeat(32)}`,
      })
      const [tokenId = 0n] = tokenIds
      const model = '09520123456801'
      assert.ok((await world.components.items.register({ tokenId, gtin: model, serial: 'T-1' })).ok)
      await indexed(tokenId)
      const passport = bodyOf<Passport>(await ask(`/dppsByProductId/${id(model)}`, 'readDppByProductId'))
      assert.equal(passport.dppStatus, 'invalid')
      assert.ok(passport.lastUpdate > '2020', passport.lastUpdate)
      const dated = await ask(
        `/dppsByProductIdAndDate/${id(model)}?date=2099-01-01`,
        'readDppVersionByProductIdAndDate',
      )
      assert.deepEqual(resultOf(dated), [400, 'ClientErrorBadRequest'])
    })

    it('gives a past version, and where on chain its text was set', async () => {
      const before = bodyOf<Passport>(await ask(`/dpps/${id(passportOf(other))}`, 'readDppById'))
      const chain = createTestClient({ mode: 'anvil', transport: http(world.chainUrl) }).extend(publicActions)
      const changed = canonicalMetadata({ name: 'Satchel No. 8' })
      assert.ok(changed.ok)
      await world.components.metadata.put(changed)
      // Blocks have whole seconds: the new version begins in a later one.
      await chain.increaseTime({ seconds: 5 })
      await world.write({ kind: 'setMetadataHash', tokenId: other.tokenId, metadataHash: changed.hash })
      await indexed(other.tokenId)
      const present = bodyOf<Passport>(await ask(`/dpps/${id(passportOf(other))}`, 'readDppById'))
      assert.notEqual(present.lastUpdate, before.lastUpdate)
      const nameIn = ({ elements }: Passport) => elements.find(({ elementId }) => elementId === 'name')?.value
      assert.deepEqual([nameIn(before), nameIn(present)], ['Satchel No. 7', 'Satchel No. 8'])

      const at = `?date=${before.lastUpdate}`
      const past = bodyOf<Passport>(
        await ask(`/dppsByIdAndDate/${id(passportOf(other))}${at}`, 'readDppVersionByIdAndDate'),
      )
      assert.equal(nameIn(past), 'Satchel No. 7')
      const { evidence } = bodyOf<Product>(
        await ask(
          `/dppsByProductIdAndDate/${id(linkOf(other))}${at}&representation=compressed`,
          'readDppVersionByProductIdAndDate',
        ),
      )
      const [proof] = evidence
      assert.ok(proof !== undefined)
      const text = (await raw(world.url, new URL(proof.metadata).pathname)).text
      assert.equal(keccak256(toBytes(text)), proof.metadataHash)
      const receipt = await chain.getTransactionReceipt({ hash: proof.setInTransaction })
      const log = receipt.logs.find(({ logIndex }) => Number(logIndex) === proof.setByLog)
      assert.ok(log !== undefined)
      assert.ok(log.data.includes(proof.metadataHash.slice(2)), 'the event on chain holds the hash of the past text')
      assert.equal(parseEventLogs({ abi: assetRegistryAbi, logs: [log] })[0]?.eventName, 'AssetMinted')
    })
  })
})

/** Requests that `bench:growth` sends to both sizes: one row of its table each. */
import { createDemoTag, type SoftwareTag } from '../../service/src/tap/provisioning/software-tag.ts'
import { createTemplate } from '../../service/src/tap/provisioning/template.ts'
import { requestOf } from './connection.ts'
import type { GrowthWorld } from './world.ts'
import { hexOf, modelOfProduct, tapsBegan, uidOf } from './models.ts'

type Asked = { readonly port: number; readonly requests: readonly string[] }
/**
 * `once`: every request may be sent once only; `ask` makes new ones each time. `sign` is in a right answer. `warm: 'all'`: every request
 * is sent once before the time is taken.
 */
export type Row = {
  readonly name: string
  readonly once?: true
  readonly warm?: 'all'
  readonly sign: string
  readonly ask: (world: GrowthWorld) => Asked | Promise<Asked>
}

const fields = `id tagId name brand serialNumber verified createdAt updatedAt currentOwner { address } metadata { description origin }`
const page = `edges { cursor node { ${fields} } } pageInfo { hasNextPage endCursor }`
const transfer = 'id status timestamp txHash from { address } to { address }'
const seenAfter = (seconds: number) => new Date(tapsBegan + seconds * 1_000).toISOString()
const tap = 'edges { cursor node { time lastTime counter outcome country times product { id name } } }'
const anomaly = 'edges { cursor node { time kind counter lastCounter countries times product { id name } } }'
/** More taps than are sent to measure a row. */
const tapsARow = 4_500

export const rows: readonly Row[] = [
  {
    name: 'keyless read, cached',
    warm: 'all',
    sign: '"authentic":true',
    ask: ({ ports, sampled }) => reads(ports.verification, sampled),
  },
  {
    name: 'keyless read, cold',
    warm: 'all',
    sign: '"authentic":true',
    ask: ({ ports, sampled }) => reads(ports.cold, sampled),
  },
  {
    name: 'metadata by its hash',
    sign: '"description"',
    ask: ({ ports, sampled, models }) => ({
      port: ports.verification,
      requests: sampled.map((id) => requestOf(`/api/metadata/${hexOf(modelOfProduct(models, id).hash)}`)),
    }),
  },
  { name: 'tap', once: true, sign: '"verified":true', ask: (world) => taps(world, () => '/api/verify') },
  {
    name: 'page of a product',
    sign: '<!doctype html>',
    ask: ({ ports, sampled }) => ({
      port: ports.verification,
      requests: sampled.map((id) => requestOf(`/token/${id}`, html)),
    }),
  },
  {
    name: 'page of a tapped item',
    once: true,
    sign: '<!doctype html>',
    ask: (world) => taps(world, (id) => itemPath(world, id), html),
  },
  {
    name: 'passport of a tapped item',
    once: true,
    sign: '"credentialSubject"',
    ask: (world) => taps(world, (id) => `/api/dpp${itemPath(world, id)}`),
  },
  query('products, page 1', `{ products(first: 20) { ${page} } }`),
  query('products, page 1, totalCount', `{ products(first: 20) { totalCount ${page} } }`),
  query('products of a brand', `{ products(first: 20, filter: { brand: "Brand 7" }) { totalCount ${page} } }`),
  query('products verified', `{ products(first: 20, filter: { verified: true }) { totalCount ${page} } }`),
  query(
    'products of an owner',
    `{ products(first: 20, filter: { owner: "${`0x${'7'.padStart(40, '0')}`}" }) { ${page} } }`,
  ),
  query(
    'product, the first time',
    `query ($id: ID!) { product(id: $id) { ${fields} state transfers { ${transfer} } } }`,
    (world) => inTurn(world, (tens) => tens * 10 + 1),
  ),
  query(
    'product, again',
    `query ($id: ID!) { product(id: $id) { ${fields} state transfers { ${transfer} } } }`,
    (world) => inTurn(world, (tens) => tens * 10 + 1),
  ),
  query(
    'product with history',
    'query ($id: ID!) { product(id: $id) { id history(first: 20) { totalCount edges { node { type timestamp } } } } }',
    ({ sampled }) => sampled.map((id) => ({ id: String(id) })),
  ),
  query('transfers, newest', `{ transfers(first: 20) { edges { node { ${transfer} product { id name } } } } }`),
  query('transfers that failed', `{ transfers(first: 20, status: FAILED) { edges { node { ${transfer} } } } }`),
  query(
    'transfers of a product',
    `query ($id: ID!) { transfers(productId: $id, first: 20) { edges { node { ${transfer} } } } }`,
    (world) => inTurn(world, (tens) => tens * 10 + 1),
  ),
  query(
    'products by 20 ids',
    `query ($ids: [ID!]) { products(first: 20, filter: { ids: $ids }) { ${page} } }`,
    (world) =>
      Array.from({ length: 50 }, (_, from) => ({
        ids: Array.from({ length: 20 }, (_, step) => String(1 + (((from * 20 + step) * 7_919) % world.products))),
      })),
  ),
  query(
    'products of a GTIN',
    `query ($gtin: String) { products(first: 20, filter: { gtin: $gtin }) { ${page} } }`,
    (world) => world.models.map(({ gtin }) => ({ gtin })),
  ),
  query(
    'products by serial',
    `query ($serial: String) { products(first: 20, filter: { serialNumber: $serial }) { ${page} } }`,
    (world) => inTurn(world, (tens) => tens * 10 + 1).map(({ id }) => ({ serial: `SN${id}` })),
  ),
  query('products flagged', `{ products(first: 10, filter: { flagged: true }) { ${page} } }`),
  query('products not flagged', `{ products(first: 20, filter: { flagged: false }) { ${page} } }`),
  query('products reported stolen', `{ products(first: 2, filter: { report: STOLEN }) { ${page} } }`),
  query('products of a state', `{ products(first: 20, filter: { state: BOUND }) { totalCount ${page} } }`),
  query(
    'products of three states',
    `{ products(first: 20, filter: { states: [MINTED, FLAGGED, CLAIMED] }) { totalCount ${page} } }`,
  ),
  query('products untagged', `{ products(first: 20, filter: { tagged: false }) { ${page} } }`),
  query(
    'products changed since',
    `{ products(first: 20, orderBy: { field: UPDATED_AT }, filter: { updatedAfter: "2025-01-01T00:05:00Z" }) { ${page} } }`,
  ),
  query('products by name', `{ products(first: 20, orderBy: { field: NAME, direction: ASC }) { ${page} } }`),
  query('products, the last page', `{ products(last: 20) { ${page} } }`),
  query(
    'transfers of a party',
    `{ transfers(first: 20, filter: { party: "${`0x${'c'.padStart(40, '0')}`}" }) { edges { node { ${transfer} } } } }`,
  ),
  query(
    'transfers of a time',
    `{ transfers(first: 20, filter: { initiatedBefore: "2025-01-12T00:00:00Z" }) { edges { node { ${transfer} } } } }`,
  ),
  ...['BRAND', 'STATE', 'FLAG', 'DAY'].map((group) =>
    query(`counts by ${group}`, `{ productStats(groupBy: ${group}, first: 10) { edges { node { key count } } } }`),
  ),
  query('products by part of a name', `{ products(first: 20, filter: { nameContains: "jacket 000a" }) { ${page} } }`),
  query('products by a common part', `{ products(first: 20, filter: { nameContains: "jacket" }) { ${page} } }`),
  query('taps, newest', `{ taps(first: 20) { ${tap} } }`),
  query('taps of a product', `query ($id: ID!) { taps(first: 20, filter: { productId: $id }) { ${tap} } }`, eachSample),
  query('taps of an outcome', `{ taps(first: 20, filter: { outcome: REPLAYED }) { ${tap} } }`),
  query('taps of a country', `{ taps(first: 20, filter: { country: "PT" }) { ${tap} } }`),
  query('taps of a time', `{ taps(first: 20, filter: { timeBefore: "${seenAfter(60)}" }) { ${tap} } }`),
  query(
    'taps of an outcome and a time',
    `{ taps(first: 20, filter: { outcome: REPLAYED, timeBefore: "${seenAfter(180)}" }) { ${tap} } }`,
  ),
  query(
    'taps of a product and an outcome',
    `query ($id: ID!) { taps(first: 20, filter: { productId: $id, outcome: FRESH }) { ${tap} } }`,
    eachSample,
  ),
  query('tapAnomalies, newest', `{ tapAnomalies(first: 20) { ${anomaly} } }`),
  query(
    'tapAnomalies of a product',
    `query ($id: ID!) { tapAnomalies(first: 20, filter: { productId: $id }) { ${anomaly} } }`,
    eachSample,
  ),
  query('tapAnomalies of a kind', `{ tapAnomalies(first: 20, filter: { kind: COUNTER_JUMP }) { ${anomaly} } }`),
  query(
    'tapAnomalies of a time',
    `{ tapAnomalies(first: 20, filter: { timeBefore: "${seenAfter(120)}" }) { ${anomaly} } }`,
  ),
]

const html = ['Accept: text/html']

function reads(port: number, ids: readonly number[]): Asked {
  return { port, requests: ids.map((id) => requestOf(`/api/asset/${id}`)) }
}

function query(name: string, text: string, variables: (world: GrowthWorld) => readonly object[] = () => [{}]): Row {
  return {
    name: `GraphQL: ${name}`,
    // A list without rows would cost the same in every catalogue.
    sign: text.includes('edges') ? '"edges":[{' : '{"data":{',
    ask: (world) => ({
      port: world.ports.graphql,
      requests: variables(world).map((one) =>
        requestOf(
          '/graphql',
          [`Authorization: Bearer ${world.apiKey}`],
          JSON.stringify({ query: text, variables: one }),
        ),
      ),
    }),
  }
}

function eachSample({ sampled }: GrowthWorld): { id: string }[] {
  return sampled.map((id) => ({ id: String(id) }))
}

/** As many products as there are sampled ones, of those with transfers, all over the catalogue. */
function inTurn({ products, sampled }: GrowthWorld, idOf: (tens: number) => number): { id: string }[] {
  const tens = Math.floor(products / 10)
  return sampled.map((_, index) => ({ id: String(idOf((index * 7_919) % tens)) }))
}

function itemPath({ models }: GrowthWorld, id: number): string {
  return `/01/${modelOfProduct(models, id).gtin}/21/SN${id}`
}

const tagsOf = new WeakMap<GrowthWorld, Map<number, SoftwareTag>>()
const turnOf = new WeakMap<GrowthWorld, number>()

/** Fresh taps of the sampled products in turn, a few rounds of all of them at most. */
async function taps(
  world: GrowthWorld,
  pathOf: (id: number) => string,
  headers: readonly string[] = [],
): Promise<Asked> {
  const { batch, sampled, ports } = world
  const tags = tagsOf.get(world) ?? new Map<number, SoftwareTag>()
  tagsOf.set(world, tags)
  const first = turnOf.get(world) ?? 0
  turnOf.set(world, first + tapsARow)
  const requests: string[] = []
  for (let turn = first; turn < first + tapsARow; turn += 1) {
    const id = sampled[turn % sampled.length] ?? 2
    const tag = tags.get(id) ?? (await createDemoTag({ batch, uid: uidOf(id), counter: 2, template }))
    tags.set(id, tag)
    requests.push(requestOf(pathOf(id) + new URL(tag.tap() ?? '').search, headers))
  }
  return { port: ports.verification, requests }
}

const made = createTemplate('https://a.example/?picc={picc}&cmac={cmac}')
if (!made.ok) throw new Error(made.error)
const { template } = made

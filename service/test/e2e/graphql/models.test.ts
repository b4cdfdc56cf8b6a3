/** Models (GTIN) of other brands: what is shown of a model is what its newest items have alike. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { refreshAssetItem } from '../../../src/index/assets/registrations.ts'
import type { ApiKey } from '../../../src/access/api-keys.ts'
import { type Ask, askerIn } from '../../support/graphql/mutations.ts'
import { refusalOf } from '../../support/index/transfers.ts'
import { demoBatchOf } from '../../support/tap/bound.ts'
import { newUid } from '../../support/tap/tags.ts'
import { until } from '../../support/wait.ts'
import { startWorld, type World } from '../../support/world.ts'

const [gtin, ownGtin] = ['09520001000027', '09520001000034']
const ofBolt = { scopes: ['write'], brands: ['Bolt'] } as const

describe('a key with brands', () => {
  let world: World
  let ask: Ask
  before(async () => {
    world = await startWorld()
    await demoBatchOf(world)
    ask = askerIn(world)
  })
  after(() => world.end())

  const step = (field: string, input: object, key?: Partial<ApiKey>) => ask(field, 'product { id }', input, key)

  it('gives no product a GTIN that only products of other brands have', async () => {
    const { database, classes, items, reader } = world.components
    const acme = await world.mint({ name: 'A', brand: 'Acme' })
    const bolt = await world.mint({ name: 'B', brand: 'Bolt' })
    assert.ok((await items.register({ tokenId: acme, gtin, serial: 'A-1' })).ok)
    await until(async () => {
      await refreshAssetItem(database, acme)
      const isIndexed = (await database.query("select 1 from asset where brand = 'Bolt'")).length === 1
      return isIndexed && (await classes.itemsOfClass(gtin)).length === 1
    })
    const item = { gtin, serialNumber: 'B-1' }
    const product = { tagId: 'bolt-1', name: 'B', brand: 'Bolt', ...item }
    const tag = { productId: String(bolt), uid: Buffer.from(newUid()).toString('hex'), batchId: 'test', ...item }
    refusalOf(await step('registerProduct', product, ofBolt), 'gtin', /Products of another brand/)
    refusalOf(await step('bindTag', tag, ofBolt), 'gtin', /Products of another brand/)
    assert.equal((await reader.read(bolt)).asset.record.state, 1)
    assert.equal((await step('bindTag', { ...tag, gtin: ownGtin }, ofBolt)).success, true)
    assert.equal((await step('registerProduct', product)).success, true, 'a key for all brands may')
  })
})

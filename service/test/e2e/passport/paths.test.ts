/** The paths of GET /api/dpp/… over raw HTTP: legal items, illegal ones, and that a wrong path consumes no tap (spec §4.5, §4.6). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assertRefused, openItems, recordingClient, queryOf, type TappedItem } from '../../support/passport/passport.ts'
import { startWorld, type World } from '../../support/world.ts'

describe('the path of a passport', () => {
  let world: World
  let items: Awaited<ReturnType<typeof openItems>>
  let shared: TappedItem
  let ask: ReturnType<typeof recordingClient>['ask']
  let counterOf: ReturnType<typeof recordingClient>['counterOf']
  let seen: readonly string[]
  before(async () => {
    world = await startWorld()
    items = await openItems(world)
    ;({ ask, counterOf, seen } = recordingClient(world))
    shared = await items.bound({ name: 'Shared' })
  })
  after(() => world.end())

  const badPaths: readonly (readonly [string, number, RegExp])[] = [
    ['01/09520001000004/21/x', 400, /GTIN/],
    ['01/9520001000003/21/x', 400, /GTIN/],
    ['01/095200010000030/21/x', 400, /GTIN/],
    ['01/0952000100000%33/21/x', 400, /GTIN/],

    [`01/09520001000003/21/${'x'.repeat(21)}`, 400, /serial/],
    ['01/09520001000003/21/', 400, /serial/],
    ['01/09520001000003/21/a/b', 400, /serial/],
    ['01/09520001000003/21/%zz', 400, /serial/],
    ['01/09520001000003/21/a%20b', 400, /serial/],
    ['01/09520001000003/21/%C3%A4', 400, /serial/],
    ['gtin/09520001000003/ser/x', 404, /no passport at this path/],
    ['01/09520001000003', 404, /no passport at this path/],
    ['01/09520001000003/10/lot', 404, /no passport at this path/],
    ['token/0x1', 400, /token id/],
    ['token/', 400, /token id/],
    ['token/-1', 400, /token id/],
    [`token/${2n ** 256n}`, 400, /token id/],
    ['token/%zz', 400, /token id/],
    ['token/1/x', 404, /no passport at this path/],
    ['', 404, /no passport at this path/],
    ['tokens/1', 404, /no passport at this path/],
  ]
  for (const [path, status, error] of badPaths) {
    it(`answers ${status} for /api/dpp/${path.slice(0, 60)} and leaves the tap unused`, async () => {
      const before = await counterOf(shared)
      assertRefused(
        await ask(`/api/dpp/${Buffer.from(path).toString('latin1')}?${queryOf(shared.tag.next())}`),
        status,
        error,
      )
      assert.equal(await counterOf(shared), before)
    })
  }

  it('reads a serial as GS1 writes it: `%2F` belongs to it, `+` is a plus, over-encoding is the same item', async () => {
    const item = await items.bound({ name: 'Slash' }, { serial: 'a/b+C%?.' })
    for (const spelling of ['a%2Fb+C%25%3F.', 'a%2fb%2bC%25%3f%2e', '%61%2F%62%2B%43%25%3F%2E', 'a%2Fb+C%25%3F./']) {
      const reply = await ask(`/api/dpp/01/${item.gtin}/21/${spelling}?${queryOf(item.tag.next())}`)
      assert.equal(reply.status, 200, `${spelling} ${reply.text}`)
      assert.equal(
        (JSON.parse(reply.text) as { id: string }).id,
        `${world.url}/api/dpp/01/${item.gtin}/21/a%2Fb%2BC%25%3F.`,
      )
    }
    for (const spelling of ['a/b+C%25%3F.', 'A%2Fb+C%25%3F.', 'a%252Fb+C%25%3F.'])
      assert.notEqual((await ask(`/api/dpp/01/${item.gtin}/21/${spelling}?${queryOf(item.tag.next())}`)).status, 200)
  })

  it('finds nothing under the serials . and .. , which cannot be registered', async () => {
    for (const serial of ['.', '..']) {
      assert.deepEqual((await world.components.items.register({ tokenId: 9n, gtin: shared.gtin, serial })).ok, false)
      for (const spelling of [serial, serial.replaceAll('.', '%2e')])
        assertRefused(
          await ask(`/api/dpp/01/${shared.gtin}/21/${spelling}?${queryOf(shared.tag.next())}`),
          404,
          /belong/,
        )
    }
  })

  it('lets nothing of a tap, a chip or an owner out, neither in answers nor in the log', () => {
    assert.ok(items.secrets() > 40 && seen.length > 25)
    assert.deepEqual(items.leaks(seen), [])
    assert.deepEqual(items.leaks(world.lines), [])
  })
})

/** The page of a tap whose chip reports an opened seal, with a chain that fails behind the tap. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { assetFlags } from '@touchstone/verdict'
import { useOpened } from '../../support/opened.ts'
import { startFaultWorld } from '../../support/fault-world.ts'
import { isCallOfContract } from '../../support/fault-rpc.ts'
import { openItems, queryOf } from '../../support/passport/passport.ts'
import { noMetadata } from '../../support/world.ts'

describe('the page of an item whose seal was opened', () => {
  const world = useOpened(() => startFaultWorld({ PASSPORT_SIGNING: 'on' }))
  let items: Awaited<ReturnType<typeof openItems>>
  before(async () => void (items = await openItems(world)))

  it('offers no certificate', async () => {
    const { tag, tokenId } = await items.bound()
    await world.write({ kind: 'activate', tokenId })
    const pageOf = async () => (await world.get(`/token/${tokenId}?${queryOf(tag.next())}`)).text()
    const [, ticket = ''] = /name="ticket" value="([^"]+)"\s*\/>\s*<h3>/.exec(await pageOf()) ?? []
    await world.write({ kind: 'flag', tokenId, bits: assetFlags.TAMPER, reasonHash: noMetadata })
    assert.doesNotMatch(await pageOf(), /action="\/certificate/)
    const body = new URLSearchParams({ as: 'jwt', ticket })
    assert.equal((await world.get('/certificate', { method: 'POST', body })).status, 409)
  })

  it('says so, also when the chain is read once only', async () => {
    for (const most of [Infinity, 1]) {
      const { tag, tokenId } = await items.bound()
      await world.write({ kind: 'flag', tokenId, bits: assetFlags.TAMPER, reasonHash: noMetadata })
      let calls = 0
      world.faults.set({
        name: 'rpc-error',
        when: (method, params) => isCallOfContract(method, params) && (calls += 1) > most,
      })
      const page = await (await world.get(`/token/${tokenId}?${queryOf(tag.next())}`)).text()
      world.faults.set('none')
      assert.match(page, /<body data-tap="tapped"/)
      assert.match(page, /class="verdict tone-stop/, `${most} calls`)
    }
  })
})

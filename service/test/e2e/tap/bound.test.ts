/** TAP_BIND over HTTP: the client that presented a tap may repeat it. That holds also when the chain did not answer at first. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { useOpened } from '../../support/opened.ts'
import { startFaultWorld } from '../../support/fault-world.ts'
import { zeroHash } from '../../../src/domain/chain.ts'
import { createTapTickets } from '../../../src/tap/tap-ticket.ts'
import { createTapBinding, tapSecrets } from '../../../src/tap/tap-tokens.ts'
import { openItems, queryOf } from '../../support/passport/passport.ts'

const formerKek = Uint8Array.from({ length: 32 }, (_byte, index) => index)
const former = tapSecrets({ kek: formerKek })

describe('a tap that is bound to its client', () => {
  const world = useOpened(() =>
    startFaultWorld({ TAP_BIND: 'cookie', TAG_KEK_PREVIOUS: Buffer.from(formerKek).toString('hex') }),
  )
  let items: Awaited<ReturnType<typeof openItems>>
  before(async () => void (items = await openItems(world)))

  it('is not lost when the chain cannot be read behind it', async () => {
    const { tag, tokenId } = await items.bound()
    for (const path of ['/tap', '/api/verify', `/api/dpp/token/${tokenId}`]) {
      const query = queryOf(tag.next())
      const ask = (cookie = '') => world.get(`${path}?${query}`, { headers: { cookie } })
      world.faults.set('rpc-error')
      const failed = await ask()
      assert.equal(failed.status, 502, path)
      const copied = await ask()
      assert.ok(copied.status < 500 && !(await isShown(copied)), 'a copy of the link is refused without the chain')
      world.faults.set('none')
      const [cookie = ''] = failed.headers.getSetCookie().map((one) => one.split(';', 1)[0] ?? '')
      assert.equal(await isShown(await ask(cookie)), true, path)
      assert.equal(await isShown(await ask()), false, 'of another client')
    }
  })

  it('is shown again to its browser, which has tapped another item since', async () => {
    const [one, two] = [await items.bound(), await items.bound()]
    const jar = new Map<string, string>()
    const open = async ({ tag }: typeof one, query = queryOf(tag.next())) => {
      const cookie = [...jar].map((pair) => pair.join('=')).join('; ')
      const answer = await world.get(`/tap?${query}`, { headers: { cookie } })
      for (const line of answer.headers.getSetCookie()) {
        const [, name = '', value = '', rest = ''] = /^([^=]+)=([^;]*)(.*)$/.exec(line) ?? []
        assert.match(rest, /; Max-Age=300;/)
        jar.set(name, value)
      }
      return { isShown: await isShown(answer), query }
    }
    const first = await open(one)
    assert.deepEqual([first.isShown, (await open(two)).isShown], [true, true])
    assert.equal((await open(one, first.query)).isShown, true)
    jar.clear()
    assert.equal((await open(one, first.query)).isShown, false, 'of another client')
  })

  it('is still its client’s where a process with the former TAG_KEK made the cookie and the ticket', async () => {
    const { tag, tokenId } = await items.bound()
    const query = queryOf(tag.next())
    const ask = (cookie = '') => world.get(`/tap?${query}`, { headers: { cookie } })
    assert.equal(await isShown(await ask()), true)
    const binding = createTapBinding({ ...former, windowSeconds: 300 })
    const { token } = binding.issue({ uid: tag.uid, epoch: 0, counter: 1 })
    assert.equal(await isShown(await ask(`__Host-tap-${token.slice(0, 12)}=${token}`)), true)

    const tickets = createTapTickets({ ...former, purpose: 'difference report', revokedBatches: async () => [] })
    const ticket =
      tickets.issue({ tokenId, tagHash: zeroHash, epoch: 0, tapCounter: 1, batchId: 'test', ageSeconds: 0 }) ?? ''
    const body = new URLSearchParams({ ticket })
    assert.equal((await world.get('/report', { method: 'POST', body })).status, 200)
  })
})

/** Returns whether an answer to a tap shows the item as present. */
async function isShown(response: Response): Promise<boolean> {
  const text = await response.text()
  return /"verified":true|<body data-tap="tapped"|"tapCounter":/.test(text)
}

/** Steps of ownership that the routes of the page refuse, and repeats of those that they took (decisions/0037). */
import assert from 'node:assert/strict'
import { after, before, describe, it, mock } from 'node:test'
import { assetFlags, type Hex } from '@touchstone/verdict'
import { signRecoverable } from 'tiny-secp256k1'
import { bytesToHex, hashTypedData, hexToBytes, zeroHash } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import { registryTypedData } from '../../../src/chain/transactions/typed-data.ts'
import { createRateLimiter } from '../../../src/http/rate-limit/limiter.ts'
import type { TapTickets } from '../../../src/tap/tap-ticket.ts'
import { hostOf } from '../../support/pages/host.ts'
import { forgeTicket, ticketIn as certificateTicketIn } from '../../support/pages/certificate.ts'
import { headlineOf } from '../../support/pages/headline.ts'
import { dataOf, newAccount, openOwnership, type OwnershipWorld } from '../../support/pages/ownership.ts'
import { testTag } from '../../support/tap/tags.ts'
import type { BatchRecord } from '../../../src/tap/keys/batch.ts'
import { commandsOf } from '../../support/processes/cli.ts'
import { until } from '../../support/wait.ts'
import { startFaultWorld, type FaultWorld } from '../../support/fault-world.ts'
import { startWorld, type World } from '../../support/world.ts'

describe('the routes of ownership in the page', () => {
  let world: World
  let own: OwnershipWorld
  before(async () => {
    world = await startWorld({ env: { PAGE_OWNERSHIP: 'claim,transfer,report', PASSPORT_SIGNING: 'on' } })
    own = await openOwnership(world)
  })
  after(() => world?.end())

  it('claims nothing for another site or without a fresh tap', async () => {
    const item = await own.released()
    const ticket = await own.ticketOf(item)
    const { address: account } = newAccount()
    const claim = async (fields: object, headers = {}) =>
      own.reasonOf(await own.send('/claim', { ticket, account, ...fields }, headers))
    assert.deepEqual(await claim({}), [200, undefined])
    assert.deepEqual(await claim({}, { 'Sec-Fetch-Site': 'cross-site' }), [400, 'invalid'])
    assert.deepEqual(await claim({}, { 'Content-Type': 'text/plain' }), [400, 'invalid'])
    assert.deepEqual(await claim({ account: `0x${'0'.repeat(40)}` }), [400, 'invalid'])
    assert.deepEqual(await claim({ deadline: '1e9', signature: '0x12' }), [400, 'invalid'])
    assert.deepEqual(await claim({ deadline: '9999999999', signature: '0x12' }), [400, 'unsigned'])
    for (const wrong of ['', forgeTicket(ticket), `9${ticket}`])
      assert.deepEqual(await claim({ ticket: wrong }), [400, 'expired'])
    assert.equal((await fetch(`${world.url}/claim`)).status, 405)
    assert.ok(!(await own.pageOf(`${world.url}${own.pathOf(item)}`)).includes('data-ticket'))
  })

  it('claims by a reload of the browser that opened the link first, and not by the link elsewhere a minute later', async () => {
    const item = await own.released()
    const link = own.tapOf(item)
    const open = (cookie = '') => fetch(link, { headers: { accept: 'text/html', cookie } })
    const first = await open()
    const [cookie = ''] = first.headers.getSetCookie().map((line) => line.split(';', 1)[0] ?? '')
    const aMinuteAgo = "update tap set first_seen = first_seen - interval '1 minute' where uid = $1"
    await world.components.database.query(aMinuteAgo, [item.tag.uid])
    const ticketOf = async (page: Response) => own.ticketIn(await page.text())
    assert.notEqual(await ticketOf(first), '')
    assert.equal(await ticketOf(await open()), '')
    assert.notEqual(await ticketOf(await open(cookie)), '')
  })

  it('claims no item whose seal was opened, not even by a ticket from before, and shows it beside an offer', async () => {
    const opened = async ({ tokenId }: { readonly tokenId: bigint }) =>
      world.write({ kind: 'flag', tokenId, bits: assetFlags.TAMPER, reasonHash: zeroHash })
    const item = await own.released()
    const wallet = newAccount()
    const signed = await own.signed('/claim', { ticket: await own.ticketOf(item) }, wallet)
    await opened(item)
    const { ticket, account } = signed
    assert.deepEqual(own.reasonOf(await own.send('/claim', { ticket, account })), [409, 'taken'])
    assert.deepEqual(own.reasonOf(await own.send('/claim', signed)), [409, 'taken'])
    assert.equal(await own.ticketOf(item), '')
    const seller = newAccount()
    const sold = await own.claimed(seller)
    const { transferId } = await own.offered(sold, { seller, to: wallet.address })
    const offer = () => own.pageOf(`${world.url}/t/${transferId}`)
    assert.doesNotMatch(await offer(), /Its seal was opened/)
    await opened(sold)
    assert.match(await offer(), /Its seal was opened/)
  })

  it('takes no consent or offer of a stranger, or whose end has passed or is later than the longest one', async () => {
    const seller = newAccount()
    /** Sends a step that is signed for each of these ends, then one for the end that the page gives. */
    async function ends(path: string, input: object, name: string, offsets: readonly number[]) {
      const terms = await own.send(path, input)
      const data = dataOf(terms) as { message: object }
      const given = Number(terms.deadline)
      const sendAt = async (deadline: string, signer = seller) => {
        const message = { ...data.message, [name]: deadline }
        const signature = await signer.signTypedData({ ...data, message } as never)
        return own.reasonOf(await own.send(path, { ...input, deadline, signature }))
      }
      for (const offset of offsets)
        assert.deepEqual(await sendAt(String(given + offset)), [400, 'unsigned'], `${path} ${offset}`)
      assert.deepEqual(await sendAt(String(given), newAccount()), [400, 'unsigned'], `${path} by a stranger`)
      assert.deepEqual(await sendAt(String(given)), [200, undefined])
    }
    const item = await own.released()
    const claim = { ticket: await own.ticketOf(item), account: seller.address }
    await ends('/claim', claim, 'deadline', [86_400, -86_400])
    const offer = { step: 'offer', ticket: await own.ticketOf(item), account: seller.address, to: newAccount().address }
    assert.deepEqual(own.reasonOf(await own.send('/transfer', { ...offer, to: seller.address })), [400, 'self'])
    await ends('/transfer', offer, 'expiry', [3_600, -73 * 3_600])
  })

  it('claims and certifies nothing by a tap of a chip that the item does not have any more, as after a reorganisation', async () => {
    const [item, other] = [await own.released(), await own.released()]
    const { pageClaims, certificateTickets, tagHash } = world.components
    const wallet = newAccount()
    const outcomesFor = async ({ tag }: typeof item) => {
      const tap = { tokenId: item.tokenId, tagHash: tagHash?.(tag.uid) ?? zeroHash, epoch: 0, tapCounter: 1 }
      const ticketOf = (tickets: TapTickets | undefined) =>
        tickets?.issue({ ...tap, batchId: 'none', ageSeconds: 0 }) ?? assert.fail('there are no tickets')
      const body = new URLSearchParams({ ticket: ticketOf(certificateTickets), as: 'jwt' })
      const { status } = await fetch(`${world.url}/certificate`, { method: 'POST', body })
      const signed = await own.signed('/claim', { ticket: ticketOf(pageClaims?.tickets) }, wallet)
      return [status, ...own.reasonOf(await own.send('/claim', signed))]
    }
    assert.deepEqual(await outcomesFor(other), [409, 400, 'expired'])
    assert.deepEqual(await outcomesFor(item), [200, 200, undefined])
  })

  it('claims and certifies nothing by a page that was opened before the batch of its tag was revoked', async () => {
    const item = await own.released()
    const page = await own.pageOf(own.tapOf(item))
    const claim = async () =>
      own.reasonOf(await own.send('/claim', { ticket: own.ticketIn(page), account: newAccount().address }))
    const certify = async () => {
      const body = new URLSearchParams({ ticket: certificateTicketIn(page), as: 'jwt' })
      return (await fetch(`${world.url}/certificate`, { method: 'POST', body })).status
    }
    const outcomes = async () => [await claim(), await certify()]
    assert.deepEqual(await outcomes(), [[200, undefined], 200])
    const { tags } = world.components
    const batchId = (await tags.tagOfUid(item.tag.uid))?.batchId ?? ''
    assert.ok(await tags.setBatchStatus(batchId, 'revoked'))
    try {
      assert.deepEqual(await outcomes(), [[400, 'expired'], 400])
    } finally {
      await tags.setBatchStatus(batchId, 'active')
    }
    assert.deepEqual(await outcomes(), [[200, undefined], 200])
  })

  it('claims once: the same signature again gets the first answer, and another wallet nothing', async () => {
    const item = await own.released()
    const ticket = await own.ticketOf(item)
    const wallets = [newAccount(), newAccount()]
    const signed = await Promise.all(wallets.map((wallet) => own.signed('/claim', { ticket }, wallet)))
    const first = await own.send('/claim', signed[0] ?? {})
    assert.deepEqual([first.http, first.status], [200, 'mined'])
    assert.deepEqual(await own.send('/claim', signed[0] ?? {}), first)
    const { account } = signed[1] ?? {}
    for (const other of [{ account }, { deadline: '9999999999' }, { signature: '0x12' }, { ...signed[1] }])
      assert.deepEqual(own.reasonOf(await own.send('/claim', { ...signed[0], ...other })), [409, 'taken'])
  })

  it('refuses altered links, other sites, used taps, offers that are over, and answers a repeat as the first time', async () => {
    const seller = newAccount()
    const recipient = newAccount()
    const item = await own.claimed(seller)
    const { transferId, signed, ticket } = await own.offered(item, { seller, to: recipient.address })
    const [account, to] = [recipient.address, recipient.address]
    const repeated = await own.send('/transfer', signed)
    assert.deepEqual([repeated.status, repeated.transferId], ['mined', transferId])
    const [token, nonce] = transferId.split('-')
    for (const wrong of [
      `${token}-${Number(nonce) + 1}`,
      `${token}-0`,
      `9${token}-${nonce}`,
      `${transferId}x`,
      `${token}`,
      '%2e',
    ])
      assert.equal((await fetch(`${world.url}/t/${wrong}`)).status, 404, wrong)
    assert.equal((await fetch(`${world.url}/t/${transferId}`, { method: 'POST' })).status, 405)

    const accept = async (fields: object, headers = {}) =>
      own.reasonOf(await own.send('/transfer', { step: 'accept', transferId, account, ...fields }, headers))
    assert.deepEqual(await accept({}, { 'Sec-Fetch-Site': 'cross-site' }), [400, 'invalid'])
    assert.deepEqual(await accept({}, { 'Content-Type': 'text/plain' }), [400, 'invalid'])
    assert.deepEqual(await accept({ account: newAccount().address }), [403, 'another'])
    assert.deepEqual(await accept({ transferId: `${token}-${Number(nonce) + 1}` }), [404, 'over'])
    assert.deepEqual(await accept({ transferId: 'x' }), [404, 'over'])
    assert.deepEqual(await accept({ signature: `0x${'11'.repeat(65)}` }), [400, 'unsigned'])
    assert.deepEqual(await accept({ step: 'void' }), [400, 'invalid'])

    const offer = async (fields: object) => {
      const sent = await own.send('/transfer', { step: 'offer', ticket, account: seller.address, to, ...fields })
      return [...own.reasonOf(sent), sent.transferId]
    }
    assert.deepEqual(await offer({}), [409, 'standing', transferId])
    assert.deepEqual(await offer({ ticket: '' }), [400, 'expired', undefined])
    assert.deepEqual(await offer({ account: newAccount().address }), [403, 'notOwner', undefined])

    // One tap makes one offer: the operator's gas cannot be spent in a loop.
    await own.answered('withdraw', { transferId, account: seller })
    const again = await own.signed('/transfer', { step: 'offer', ticket, to }, seller)
    assert.deepEqual(await offer(again), [409, 'used', undefined])
    const voided = { step: 'withdraw', ticket, account: seller.address, signature: `0x${'11'.repeat(65)}` }
    assert.deepEqual(own.reasonOf(await own.send('/transfer', voided)), [400, 'unsigned'])

    // An offer that was accepted gets the first answer for the same signature, and none for another.
    const second = await own.offered(item, { seller, to })
    const first = await own.answered('accept', { transferId: second.transferId, account: recipient })
    assert.deepEqual(await own.send('/transfer', first.signed), first.sent)
    assert.deepEqual(await accept({ transferId: second.transferId }), [404, 'over'])
    assert.equal(await own.ownerOf(item), recipient.address.toLowerCase())
  })

  it('refuses another account that signs the values of a standing offer as its own', async () => {
    const [seller, stranger] = [newAccount(), newAccount()]
    const item = await own.claimed(seller)
    const { transferId, signed } = await own.offered(item, { seller, to: newAccount().address })
    const nonce = Number(transferId.split('-')[1]) - 1
    const terms = { to: signed.to as Hex, expiry: BigInt(signed.deadline ?? 0), messageHash: zeroHash }
    const message = { tokenId: item.tokenId, from: stranger.address, nonce, ...terms }
    const { domain } = world.components.transferReads
    const signature = await stranger.signTypedData(registryTypedData(domain, 'InitiateTransfer', message))
    const sent = await own.send('/transfer', { ...signed, account: stranger.address, signature })
    assert.deepEqual(own.reasonOf(sent), [403, 'notOwner'])
  })

  it('takes a step for a tap of a chip that was written anew, although its former life had a tap of this number', async () => {
    const seller = newAccount()
    const item = await own.claimed(seller)
    const { transferId } = await own.offered(item, { seller, to: newAccount().address })
    await own.answered('withdraw', { transferId, account: seller })
    const { tagKeys, tags } = world.components
    const made = await tagKeys.create({ id: 'anew', epoch: 1, demo: true })
    assert.ok(made.ok)
    const { uid } = item.tag
    await tags.importTag({ uid, epoch: 1, batchId: 'anew' })
    const tag = await testTag(made.value as BatchRecord, { uid, counter: 1 })
    const { transferId: next } = await own.offered({ ...item, tag }, { seller, to: newAccount().address })
    assert.notEqual(next, transferId)
    assert.deepEqual(
      await world.components.database.query('select epoch, counter from tap where uid = $1 order by 1, 2', [uid]),
      [
        { epoch: 0, counter: 1 },
        { epoch: 0, counter: 2 },
        { epoch: 1, counter: 2 },
      ],
    )
  })

  it('shows an offer without an end, which only a call of the contract makes', async () => {
    const seller = newAccount()
    const { tokenId } = await own.claimed(seller)
    const { transferReads: transfers } = world.components
    const { offer } = await transfers.position(tokenId)
    const terms = { tokenId, to: newAccount().address, expiry: 2n ** 64n - 1n, messageHash: zeroHash }
    const message = { ...terms, from: seller.address, nonce: offer.nonce }
    const signature = await seller.signTypedData(registryTypedData(transfers.domain, 'InitiateTransfer', message))
    await world.write({ kind: 'initiateTransferBySig', ...terms, signature })
    const page = await fetch(`${world.url}/t/${tokenId}-${offer.nonce + 1}`)
    assert.equal(page.status, 200)
    assert.ok((await page.text()).includes('9999-12-31T23:59:59Z'))
    const shown = await commandsOf(world)('asset', 'show', String(tokenId))
    assert.match(shown.out, /pending until 9999-12-31T23:59:59/, shown.err)
  })

  it('offers no step that the operator has switched off', async () => {
    const { tokenId } = await own.claimed()
    const host = hostOf(world, {
      pageClaims: undefined,
      pageTransfers: undefined,
      pages: { ...world.components.pages, ownership: new Set() },
    })
    const record = await host.request(`/token/${tokenId}`)
    assert.equal(record.status, 200)
    assert.ok(!(await record.text()).includes('data-step'))
    assert.equal((await host.request('/t/1-1')).status, 404)
    for (const path of ['/claim', '/transfer']) {
      const reply = await host.request(path, { method: 'POST', body: '{}' })
      assert.deepEqual([reply.status, await reply.json()], [404, { reason: 'off' }])
    }
  })

  it('says how long to wait when a client has sent too many steps', async () => {
    const host = hostOf(world, {
      pages: { ...world.components.pages, ownership: new Set(['claim', 'transfer']) },
      tapLimiter: createRateLimiter({ limit: 1 }),
    })
    await host.request('/claim', { method: 'POST' })
    for (const path of ['/claim', '/transfer']) {
      const reply = await host.request(path, { method: 'POST' })
      assert.deepEqual([reply.status, await reply.json()], [429, { reason: 'limited' }])
      assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d?$/)
    }
  })

  it('refuses the acceptance of a reported item and of an expired offer', async () => {
    const seller = newAccount()
    const recipient = newAccount()
    const item = await own.claimed(seller)
    const { transferId } = await own.offered(item, { seller, to: recipient.address })
    const accept = async () =>
      own.reasonOf(await own.send('/transfer', { step: 'accept', transferId, account: recipient.address }))
    const flag = { tokenId: item.tokenId, bits: 4, reasonHash: `0x${'0'.repeat(64)}` } as const
    await world.write({ kind: 'flag', ...flag })
    assert.deepEqual(await accept(), [409, 'held'])
    const held = await own.pageOf(`${world.url}/t/${transferId}`)
    assert.match(held, /<title>Offered, but reported · /)
    assert.equal(headlineOf(held), 'Offered, but reported')
    await world.write({ kind: 'resolve', ...flag })
    assert.deepEqual(await accept(), [200, undefined])
    await world.rpc('evm_increaseTime', [73 * 3_600])
    await world.rpc('evm_mine', [])
    assert.deepEqual(await accept(), [404, 'over'])
    const page = await fetch(`${world.url}/t/${transferId}`)
    assert.equal(page.status, 404)
    assert.ok((await page.text()).includes('This offer has ended'))
  })
})

describe('steps of ownership that are sent together', () => {
  let world: FaultWorld
  let own: OwnershipWorld
  before(async () => {
    world = await startFaultWorld({ PAGE_OWNERSHIP: 'claim,transfer' })
    own = await openOwnership(world)
  })
  after(() => world?.end())

  const sentCount = async () => Number(await world.rpc('eth_getTransactionCount', [publishedAddresses[0], 'pending']))

  /** Sends all of them before the chain has a transaction; returns how many that made, and the outcomes. */
  async function together(path: string, requests: readonly object[]) {
    const before = await sentCount()
    const released = Promise.withResolvers<void>()
    world.faults.set({ methods: ['eth_sendRawTransaction'], held: released.promise })
    let answered = 0
    const writing = new Set<string | undefined>()
    const { writer } = world.components
    const { write } = writer
    const writes = mock.method(writer, 'write', (...[request, options]: Parameters<typeof write>) => {
      writing.add(options.by?.requestId)
      return write(request, options)
    })
    const replies = requests.map((request) => own.send(path, request).finally(() => (answered += 1)))
    // One of them holds the transaction. The others are answered, or wait for it.
    await until(() => Math.max(answered + world.faults.struck(), writing.size) >= requests.length)
    writes.mock.restore()
    world.faults.set('none')
    released.resolve()
    const outcomes = (await Promise.all(replies)).map(({ status, reason }) => status ?? reason ?? '')
    return { sent: (await sentCount()) - before, outcomes: outcomes.toSorted((a, b) => a.localeCompare(b)) }
  }

  it('are one transaction for a tap, whichever wallets claim by it', async () => {
    const item = await own.released()
    const ticket = await own.ticketOf(item)
    const wallets = [newAccount(), newAccount(), newAccount()]
    const claims = await Promise.all(wallets.map((wallet) => own.signed('/claim', { ticket }, wallet)))
    assert.deepEqual(await together('/claim', claims), { sent: 1, outcomes: ['mined', 'used', 'used'] })
  })

  it('are refused to another wallet while the claim of a tap is on its way', async () => {
    const ticket = await own.ticketOf(await own.released())
    const signed = () => own.signed('/claim', { ticket }, newAccount())
    const [first, second] = [await signed(), await signed()]
    const released = Promise.withResolvers<void>()
    world.faults.set({ methods: ['eth_sendRawTransaction'], held: released.promise })
    const claimed = own.send('/claim', first)
    await until(() => world.faults.struck() > 0)
    assert.deepEqual(own.reasonOf(await own.send('/claim', second)), [409, 'used'])
    world.faults.set('none')
    released.resolve()
    assert.equal((await claimed).status, 'mined')
  })

  it('are not called refused by a fault once they are signed, because they may have been sent', async () => {
    const ticket = await own.ticketOf(await own.released())
    const signed = await own.signed('/claim', { ticket }, newAccount())
    world.faults.set('die')
    assert.deepEqual(own.reasonOf(await own.send('/claim', signed)), [502, 'unsure'])
    assert.deepEqual(own.reasonOf(await own.send('/claim', { ticket, account: signed.account })), [502, 'refused'])
    const offer = await fetch(`${world.url}/t/1-1`, { headers: { 'Accept-Language': 'en' } })
    assert.equal(offer.status, 502)
    assert.match(await offer.text(), /No answer yet/)
    world.faults.set('none')
  })

  it('are one transaction for an offer, however many signatures its recipient makes', async () => {
    const [seller, privateKey] = [newAccount(), generatePrivateKey()]
    const account = privateKeyToAccount(privateKey).address
    const item = await own.claimed(seller)
    const { transferId } = await own.offered(item, { seller, to: account })
    const input = { step: 'accept', transferId, account }
    const hash = hashTypedData(dataOf(await own.send('/transfer', input)))
    const accepts = [1, 2, 3].map((salt) => {
      const made = signRecoverable(hexToBytes(hash), hexToBytes(privateKey), new Uint8Array(32).fill(salt))
      return { ...input, signature: `${bytesToHex(made.signature)}${made.recoveryId === 0 ? '1b' : '1c'}` }
    })
    assert.deepEqual(await together('/transfer', accepts), { sent: 1, outcomes: ['mined', 'mined', 'mined'] })
    assert.equal(await own.ownerOf(item), account.toLowerCase())
    assert.deepEqual(own.reasonOf(await own.send('/transfer', { ...accepts[0], signature: '0x12' })), [404, 'over'])
  })
})

/** Transfers in two steps by signature (spec §3, §4.9, §5) against a real chain: owners, recipients and smart accounts. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assetFlags, type Hex } from '@touchstone/verdict'
import { encodeFunctionData, hashTypedData, keccak256, stringToHex, type TypedDataDefinition } from 'viem'
import { assetRegistryAbi as abi } from '../../../src/domain/registry-abi.ts'
import { fieldsOf, startMutationWorld } from '../../support/graphql/mutations.ts'
import { insertAsset, insertTransfer, setCursor } from '../../support/index/rows.ts'
import { carol, hours, refusalOf, selection, transferOf, transferSteps } from '../../support/index/transfers.ts'
import { alice, bob, hash, minted, operator } from '../../support/index/writer-world.ts'
import { deployVersion1 } from '../../support/version-1.ts'
import { useOpened } from '../../support/opened.ts'

type TypedData = TypedDataDefinition & { domain: { chainId: number; verifyingContract: Hex } }

const { typedData, done, ownedBy, sign, offer, initiate, accept, cancel, invalidate, owner } = transferSteps(
  () => world,
)
const world = useOpened(startMutationWorld)

describe('transfers by signature', () => {
  const transactions = async () => (await world.database.query('select 1 from operation')).length

  it('gives wallets typed data with its domain, decimal numbers, nonce and deadline', async () => {
    const productId = await ownedBy(alice.address)
    const given = await typedData({ productId, toAddress: bob.address.toLowerCase(), message: 'Yours now.' })
    const typed = given['typedData'] as TypedData
    assert.deepEqual(Object.keys(typed.types ?? {}), ['EIP712Domain', 'InitiateTransfer'])
    assert.equal(typed.domain.verifyingContract.toLowerCase(), world.contract)
    const { expiry, ...message } = typed.message as Record<string, unknown>
    assert.deepEqual(message, {
      tokenId: productId,
      from: alice.address.toLowerCase(),
      to: bob.address.toLowerCase(),
      nonce: 0,
      messageHash: keccak256(stringToHex('Yours now.')),
    })
    assert.equal(new Date(Number(expiry) * 1_000).toISOString(), given['deadline'])
    assert.deepEqual([given['nonce'], given['transferId']], [0, `${productId}-1`])
    assert.match(hashTypedData(typed), /^0x/)
  })

  it('offers by the owner’s signature and hands over by the recipient’s', async () => {
    const productId = await ownedBy(alice.address)
    const input = await offer(productId)
    const offered = await initiate(input)
    const id = `${productId}-1`
    assert.deepEqual([offered.success, offered.errors], [true, []])
    assert.deepEqual(transferOf(offered), {
      id,
      status: 'PENDING',
      from: { address: alice.address },
      to: { address: bob.address },
      txHash: offered['txHash'],
      expiresAt: input.deadline,
    })
    assert.equal(await owner(productId), alice.address.toLowerCase(), 'nothing moves before the recipient accepts')
    const statement = 'select transfer_id, body from transfer_message join offered_message using (hash) where hash = $1'
    const messageHash = Buffer.from(keccak256(stringToHex('Yours now.')).slice(2), 'hex')
    const stored = await world.database.query(statement, [messageHash])
    assert.deepEqual(stored, [{ transfer_id: id, body: 'Yours now.' }])

    const { signature } = await sign({ action: 'ACCEPT', transferId: id }, bob)
    assert.deepEqual(
      [(await accept({ transferId: id, signature })).success, await owner(productId)],
      [true, bob.address.toLowerCase()],
    )
  })

  it('takes the same signed offer again as the same transfer, in parallel too', async () => {
    const input = await offer(await ownedBy(alice.address))
    const before = await transactions()
    const both = await Promise.all([initiate(input), initiate(input)])
    both.push(await initiate(input))
    assert.ok(both.every(({ success }) => success))
    assert.equal(new Set(both.map((one) => `${String(transferOf(one)['id'])} ${String(one['txHash'])}`)).size, 1)
    assert.equal(await transactions(), before + 1)
  })

  it('takes the same signed offer again as the same transfer, also after the recipient has accepted', async () => {
    const input = await offer(await ownedBy(alice.address))
    const first = await initiate(input)
    const { id: transferId } = transferOf(first)
    const { signature } = await sign({ action: 'ACCEPT', transferId }, bob)
    assert.equal((await accept({ transferId, signature })).success, true)
    const messageHash = keccak256(stringToHex(input.message))
    const assetPk = await insertAsset(world.database, { tokenId: BigInt(input.productId), owner: bob.address })
    const parties = { from: alice.address, to: bob.address, messageHash }
    for (const id of [transferId, `${input.productId}-77-0`])
      // the other one is a sale without an offer
      await insertTransfer(world.database, { id, assetPk, status: 'CONFIRMED', ...parties })
    const before = await transactions()
    const again = await initiate(input)
    assert.deepEqual([again.errors, again['txHash'], transferOf(again).id], [[], first['txHash'], transferId])
    assert.equal(transferOf(again)['status'], 'CONFIRMED')
    const deadline = new Date(Date.parse(input.deadline) - 1_000).toISOString()
    for (const other of [{ signature: '0x12' }, { message: 'Not yours.' }, { deadline }])
      refusalOf(await initiate({ ...input, ...other }), 'toAddress', /already belongs/)
    await world.database.query("update transfer set status = 'FAILED' where id = $1", [transferId])
    refusalOf(await initiate(input), 'toAddress', /already belongs/)
    assert.equal(await transactions(), before)
  })

  it('accepts by the recipient only, and the same acceptance again is the same', async () => {
    const input = await offer(await ownedBy(alice.address))
    const { id: transferId } = transferOf(await initiate(input))
    const by = async (account: typeof alice) => (await sign({ action: 'ACCEPT', transferId }, account)).signature
    refusalOf(await accept({ transferId, signature: await by(carol) }), 'signature', /of the recipient/)
    refusalOf(await accept({ transferId, signature: await by(alice) }), 'signature', /of the recipient/)
    refusalOf(
      await accept({ transferId: `${input.productId}-2`, signature: '0x12' }),
      'transferId',
      /never had a transfer/,
    )
    refusalOf(
      await accept({ transferId: `${input.productId}-1-4`, signature: '0x12' }),
      'transferId',
      /<product id>-<number>/,
    )
    const signature = await by(bob)
    const first = await accept({ transferId, signature })
    const again = await accept({ transferId, signature })
    assert.deepEqual([first.success, again.success, again['txHash']], [true, true, first['txHash']])
    refusalOf(
      await accept({ transferId, signature: await carol.signMessage({ message: '' }) }),
      'transferId',
      /no longer pending/,
    )
  })

  it('cancels by the owner or the recipient only', async () => {
    for (const party of [alice, bob]) {
      const input = await offer(await ownedBy(alice.address))
      const { id: transferId } = transferOf(await initiate(input))
      const by = async (account: typeof alice) => (await sign({ action: 'CANCEL', transferId }, account)).signature
      refusalOf(await cancel({ transferId, signature: await by(carol) }), 'signature', /owner or the recipient/)
      const signature = await by(party)
      const first = await cancel({ transferId, signature })
      const again = await cancel({ transferId, signature })
      assert.deepEqual([first.success, again.success, again['txHash']], [true, true, first['txHash']])
    }
  })

  it('asks smart accounts by ERC-1271, and accounts with code by nothing else', async () => {
    const [seller, buyer] = [await world.deployWallet(alice.address), await world.deployWallet(bob.address)]
    const productId = await ownedBy(seller)
    refusalOf(await initiate(await offer(productId, { by: carol, to: buyer })), 'signature', /ERC-1271/)
    const { id: transferId } = transferOf(await initiate(await offer(productId, { by: alice, to: buyer })))
    const { signature } = await sign({ action: 'ACCEPT', transferId }, bob)
    assert.equal((await accept({ transferId, signature })).success, true)
    assert.equal(await owner(productId), buyer.toLowerCase())
    // Carol becomes an account with the code of alice's wallet: her own key no longer speaks for her.
    const own = await ownedBy(carol.address)
    const code = await world.rpc('eth_getCode', [seller, 'latest'])
    await world.rpc('anvil_setCode', [carol.address, code])
    refusalOf(await initiate(await offer(own, { by: carol })), 'signature', /not the owner’s/)
    assert.equal((await initiate(await offer(own, { by: alice }))).success, true)
    // A wallet that reverts, breaks or answers nothing has not signed.
    for (const broken of ['0x60006000fd', '0xfd', '0x00']) {
      await world.rpc('anvil_setCode', [carol.address, broken])
      const third = await ownedBy(carol.address)
      refusalOf(await initiate(await offer(third, { by: carol })), 'signature', /not the owner’s/)
    }
    await world.rpc('anvil_setCode', [carol.address, '0x'])
  })

  it('accepts after a try that reverted, as soon as the product can be accepted again', async () => {
    const send = (from: Hex, data: Hex, more = {}) =>
      world.rpc('eth_sendTransaction', [{ from, to: world.contract, data, gas: '0x40000', ...more }])
    const input = await offer(await ownedBy(alice.address))
    const { id: transferId } = transferOf(await initiate(input))
    const tokenId = BigInt(input.productId)
    await done({ kind: 'bindTag', tokenId, tagHash: hash(0xca7) })
    const { signature } = await sign({ action: 'ACCEPT', transferId }, bob)
    const guardian = keccak256(stringToHex('GUARDIAN_ROLE'))
    await send(
      operator.address,
      encodeFunctionData({ abi, functionName: 'grantRole', args: [guardian, carol.address] }),
    )
    // Both wait for the same block; the report pays more and comes first.
    const hurried = world.writerOver(world.operations, { receiptWaitMs: 100 })
    await world.automine(false)
    const early = await world.askOver(hurried)('acceptTransfer', selection, { transferId, signature })
    assert.deepEqual(early.errors, [])
    const flag = [tokenId, assetFlags.LOST, hash(0)] as const
    const tip = { maxFeePerGas: '0xba43b7400', maxPriorityFeePerGas: '0xba43b7400' }
    await send(carol.address, encodeFunctionData({ abi, functionName: 'flag', args: flag }), tip)
    await world.mine()
    await world.automine(true)
    await hurried.close()
    refusalOf(await accept({ transferId, signature }), 'transferId', /is flagged \(LOST\)/)
    await done({ kind: 'resolve', tokenId, bits: assetFlags.LOST, reasonHash: hash(0) })
    assert.equal((await accept({ transferId, signature })).success, true)
    assert.equal(await owner(input.productId), bob.address.toLowerCase())
  })
})

describe('a signed offer that was not sent', () => {
  it('is void once the owner has invalidated the nonce, and the same signature again is the same step', async () => {
    const productId = await ownedBy(alice.address)
    const unsent = await offer(productId)
    const { signature } = await sign({ action: 'INVALIDATE', productId }, alice)
    const first = await invalidate({ productId, signature })
    assert.deepEqual([first.success, first.errors], [true, []])
    const again = await invalidate({ productId, signature })
    assert.deepEqual([again.success, again['txHash']], [true, first['txHash']])
    refusalOf(await initiate(unsent), 'signature', /nonce 0, which is used up: .* or the owner has voided it/)
    const acts = await world.database.query<{ body: string }>('select body from audit_entry order by seq desc limit 2')
    assert.match(acts[0]?.body ?? '', /"act":"invalidateNonceBySig".*"REPLAYED"/)
    assert.equal((await initiate(await offer(productId))).success, true)
  })

  it('is voided by the current owner only, over the current nonce', async () => {
    const productId = await ownedBy(alice.address)
    const by = async (account: typeof alice) => (await sign({ action: 'INVALIDATE', productId }, account)).signature
    const signature = await by(alice)
    refusalOf(await invalidate({ productId, signature: await by(bob) }), 'signature', /not the owner’s/)
    refusalOf(await invalidate({ productId }), 'signature', /transferTypedData with action INVALIDATE/)
    assert.equal((await initiate(await offer(productId))).success, true)
    refusalOf(await invalidate({ productId, signature }), 'signature', /nonce 1 .* cancel it/)
    refusalOf(await typedData({ action: 'INVALIDATE' }), 'productId', /give its id/)
  })

  it('needs no voiding where the product is recycled or does not exist', async () => {
    const productId = await ownedBy(operator.address)
    await done({ kind: 'recycle', tokenId: BigInt(productId) })
    refusalOf(await invalidate({ productId }), 'productId', /is recycled/)
    for (const signed of [{}, { signature: '0x12' }])
      refusalOf(await invalidate({ productId: '999999', ...signed }), 'productId', /does not exist/)
  })

  it('cannot be voided on version 1 of the contract, which the answer says before anything is signed', async () => {
    const contract = await deployVersion1(world)
    const writer = world.writerOver(world.operations, { contract })
    const mint = { kind: 'mint', to: alice.address, metadataHash: hash(1) } as const
    const [tokenId = 0n] = minted(await writer.write(mint, { idempotencyKey: 'version-1' }))
    const ask = world.askOver(writer, contract)
    const productId = tokenId.toString()
    const refused = /version 1 of the contract, which cannot void/
    refusalOf(await ask('transferTypedData', 'nonce', { action: 'INVALIDATE', productId }), 'input', refused)
    for (const signed of [{}, { signature: '0x12' }])
      refusalOf(await ask('invalidateNonce', 'txHash', { productId, ...signed }), 'input', refused)
    await writer.close()
  })
})

describe('a transfer by signature is refused', () => {
  it('without a signature, saying where one comes from', async () => {
    const productId = await ownedBy(alice.address)
    const values = { productId, toAddress: bob.address }
    refusalOf(await initiate(values), 'signature', /transferTypedData/)
    const { signature, deadline } = await offer(productId)
    refusalOf(await initiate({ ...values, signature }), 'deadline', /part of what was signed/)
    const { id: transferId } = transferOf(await initiate({ ...values, message: 'Yours now.', signature, deadline }))
    refusalOf(await accept({ transferId }), 'signature', /transferTypedData with action ACCEPT/)
    refusalOf(await cancel({ transferId }), 'signature', /transferTypedData with action CANCEL/)
  })

  it('of a product that does not exist, signed or not', async () => {
    const values = { productId: '999999', toAddress: bob.address }
    const { signature, deadline } = await offer(await ownedBy(alice.address))
    for (const signed of [{}, { signature }, { signature, deadline }])
      refusalOf(await initiate({ ...values, ...signed }), 'productId', /Product 999999 does not exist/)
    for (const step of [accept, cancel])
      for (const signed of [{}, { signature }])
        refusalOf(await step({ transferId: '999999-1', ...signed }), 'transferId', /Product 999999 does not exist/)
    refusalOf(await typedData({ action: 'CANCEL', transferId: '999999-1' }), 'transferId', /does not exist/)
  })

  it('where there never was an offer: of a number too high, and of one that a claim used', async () => {
    const input = await offer(await ownedBy(alice.address))
    const { productId, signature } = input
    const never = new RegExp(`never had a transfer ${productId}-`)
    for (const number of [0, 1, 7])
      for (const signed of [{}, { signature }])
        refusalOf(await cancel({ transferId: `${productId}-${number}`, ...signed }), 'transferId', never)
    const { id: transferId } = transferOf(await initiate(input))
    const taken = (await sign({ action: 'CANCEL', transferId }, alice)).signature
    assert.ok((await cancel({ transferId, signature: taken })).success)
    const again = await sign({ productId, toAddress: bob.address }, alice)
    assert.ok((await initiate({ productId, toAddress: bob.address, ...again })).success)
    refusalOf(await cancel({ transferId, signature }), 'transferId', /no longer pending/)
    // The index holds the product, but no transfer of that number.
    await insertAsset(world.database, { tokenId: BigInt(productId) })
    await setCursor(world.database, { number: 1_000_000, at: '2026-01-01T00:00:00Z' })
    refusalOf(await cancel({ transferId, signature }), 'transferId', never)
    refusalOf(await typedData({ action: 'CANCEL', transferId }), 'transferId', never)
  })

  it('by a signature whose offer is over, with the reason', async () => {
    const input = await offer(await ownedBy(alice.address))
    const { id } = transferOf(await initiate(input))
    const answer = { transferId: id, signature: (await sign({ action: 'CANCEL', transferId: id }, bob)).signature }
    assert.equal((await cancel(answer)).success, true)
    refusalOf(await initiate(input), 'signature', /nonce 0, which is used up: its transfer is over/)
    const { signature } = await offer(input.productId)
    refusalOf(await initiate({ ...input, signature, message: 'other words' }), 'signature', /not the owner’s signature/)
  })

  it('by the signature of another account, of other values, and one with high s', async () => {
    const productId = await ownedBy(alice.address)
    const input = await offer(productId)
    refusalOf(await initiate(await offer(productId, { by: carol })), 'signature', /current owner/)
    refusalOf(await initiate({ ...input, toAddress: carol.address }), 'signature', /not the owner’s/)
    refusalOf(await initiate({ ...input, message: 'Not yours.' }), 'signature', /not the owner’s/)
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
    const { signature } = input
    const s = (order - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, '0')
    const high = signature.slice(0, 66) + s + (signature.endsWith('1b') ? '1c' : '1b')
    refusalOf(await initiate({ ...input, signature: high }), 'signature', /low s/)
    refusalOf(await initiate({ ...input, signature: '0x1234' }), 'signature', /not the owner’s/)
    refusalOf(await initiate({ ...input, signature: 'signed' }), 'signature', /0x and hex digits/)
    assert.equal((await initiate(input)).success, true)
  })

  it('while another is pending, to the owner, to the zero address, and of a product that does not exist', async () => {
    const productId = await ownedBy(alice.address)
    const [first, second] = [await offer(productId), await offer(productId, { to: carol.address })]
    assert.equal((await initiate(first)).success, true)
    refusalOf(await initiate(second), 'productId', new RegExp(`Transfer ${productId}-1 .* is pending until`))
    refusalOf(await typedData({ productId, toAddress: carol.address }), 'productId', /pending/)
    const late = await typedData({ productId, toAddress: alice.address, deadline: '2026-01-01T00:00:00Z' })
    assert.deepEqual(fieldsOf(late), ['deadline', 'toAddress', 'productId'])
    const other = await ownedBy(alice.address)
    refusalOf(await typedData({ productId: other, toAddress: alice.address }), 'toAddress', /already belongs/)
    refusalOf(await typedData({ productId: other, toAddress: `0x${'0'.repeat(40)}` }), 'toAddress', /zero address/)
    const slip = bob.address.replace(/[a-f]/, (letter) => letter.toUpperCase())
    refusalOf(await typedData({ productId: other, toAddress: slip }), 'toAddress', /checksum/)
    refusalOf(await typedData({ productId: '999999', toAddress: bob.address }), 'productId', /does not exist/)
    refusalOf(await typedData({ productId: '0x7', toAddress: bob.address }), 'productId', /decimal token id/)
    refusalOf(await typedData({ toAddress: bob.address }), 'productId', /give its id/)
    refusalOf(await typedData({ action: 'ACCEPT' }), 'transferId', /give its id/)
  })

  it('with a deadline that is past or more than 72 hours ahead', async () => {
    const productId = await ownedBy(alice.address)
    const values = { productId, toAddress: bob.address }
    const { timestamp } = (await world.rpc('eth_getBlockByNumber', ['latest', false])) as { timestamp: Hex }
    const at = (seconds: number) => new Date((Number(timestamp) + seconds) * 1_000).toISOString()
    refusalOf(await typedData({ ...values, deadline: at(hours(73)) }), 'deadline', /at most 72 hours/)
    refusalOf(await typedData({ ...values, deadline: at(-1) }), 'deadline', /has passed/)
    const near = { ...values, deadline: at(hours(1)) }
    const { signature } = await sign(near, alice)
    refusalOf(await initiate({ ...near, deadline: at(hours(80)), signature }), 'deadline', /at most 72 hours/)
    assert.equal(transferOf(await initiate({ ...near, signature }))['expiresAt'], near.deadline)
  })

  it('of a flagged product, at each step', async () => {
    const productId = await ownedBy(alice.address)
    const tokenId = BigInt(productId)
    await done({ kind: 'bindTag', tokenId, tagHash: hash(77) })
    const input = await offer(productId)
    const flag = { tokenId, bits: assetFlags.LOST | assetFlags.RECALL, reasonHash: hash(0) }
    await done({ kind: 'flag', ...flag })
    refusalOf(await initiate(input), 'productId', /is flagged \(LOST, RECALL\)/)
    await done({ kind: 'resolve', ...flag })
    const { id: transferId } = transferOf(await initiate(input))
    const { signature } = await sign({ action: 'ACCEPT', transferId }, bob)
    await done({ kind: 'flag', ...flag })
    refusalOf(await accept({ transferId, signature }), 'transferId', /is flagged/)
    await done({ kind: 'resolve', ...flag })
    assert.equal((await accept({ transferId, signature })).success, true)
  })

  for (const action of ['CANCEL', 'INVALIDATE'])
    it(`of a flagged product ends by ${action} all the same`, async () => {
      const productId = await ownedBy(alice.address)
      const flag = { tokenId: BigInt(productId), bits: assetFlags.RECALL, reasonHash: hash(0) }
      await done({ kind: 'bindTag', tokenId: flag.tokenId, tagHash: hash(0xca8 + action.length) })
      const { id: transferId } = transferOf(await initiate(await offer(productId)))
      await done({ kind: 'flag', ...flag })
      const { signature } = await sign({ action, ...(action === 'CANCEL' ? { transferId } : { productId }) }, alice)
      const end = action === 'CANCEL' ? cancel({ transferId, signature }) : invalidate({ productId, signature })
      assert.equal((await end).success, true)
      await done({ kind: 'resolve', ...flag })
      refusalOf(await accept({ transferId, signature }), 'transferId', /no longer pending/)
    })

  it('once it has expired, and the owner may offer again', async () => {
    const productId = await ownedBy(alice.address)
    const { id: transferId } = transferOf(await initiate(await offer(productId)))
    const { signature } = await sign({ action: 'ACCEPT', transferId }, bob)
    await world.rpc('evm_increaseTime', [hours(72) + 1])
    await world.mine()
    refusalOf(await accept({ transferId, signature }), 'transferId', /expired at 20/)
    refusalOf(await cancel({ transferId, signature }), 'transferId', /expired at 20/)
    refusalOf(await typedData({ action: 'ACCEPT', transferId }), 'transferId', /expired at 20/)
    const again = await initiate(await offer(productId))
    assert.equal(transferOf(again)['id'], `${productId}-2`)
  })
})

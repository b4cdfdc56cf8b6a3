import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { _checkCredential } from '@digitalbazaar/vc'
import { checkStatus, decodeList } from '@digitalbazaar/vc-bitstring-status-list'
import { expanded, loaderWith } from '../../../test/support/passport/documents.ts'
import { baseUrl, did, now, sampleInput } from '../../../test/support/passport/fixtures.ts'
import { documentsOf, keysOf, proofSuite } from '../../../test/support/passport/issuer.ts'
import { passportOf } from '../credential.ts'
import { generateIssuerKeys } from './issuer-keys.ts'
import { createSigner, snapshotOf, type SignedProfile } from './signer.ts'
import {
  createStatusBits,
  createStatusIndexes,
  encodeList,
  listEntries,
  statusCandidates,
  statusListCredential,
} from './status-list.ts'
import { assetFlags, type StateCode, zeroAddress } from '@touchstone/verdict'
import { ServiceError } from '../../lib/errors.ts'

import type { StatusIndex, StatusStore } from './status-store.ts'

const issuer = { did, name: 'Example Verification Service' }

/** A store that keeps the two rules of its table: one index a token, one token an index. */
function tableStore() {
  const rows = new Map<bigint, StatusIndex>()
  const store: Pick<StatusStore, 'find' | 'claim' | 'newest'> = {
    find: async (tokenId) => rows.get(tokenId) ?? null,
    async claim(tokenId, at) {
      const isTaken = [...rows.values()].some(({ list, index }) => list === at.list && index === at.index)
      if (isTaken || rows.has(tokenId)) return false
      rows.set(tokenId, at)
      return true
    },
    newest: async () => (rows.size === 0 ? null : { list: 1, taken: rows.size }),
  }
  return { rows, store }
}

describe('a status list', () => {
  it('is decoded bit by bit by the W3C list library', async () => {
    const set = [0, 1, 7, 8, 94_567, listEntries - 1]
    const list = await decodeList({ encodedList: encodeList(set) })
    assert.equal(list.length, 131_072)
    const found = Array.from({ length: list.length }, (_none, index) => index).filter((index) => list.getStatus(index))
    assert.deepEqual(found, set)
  })

  it('refuses an index outside of it', () => {
    for (const index of [-1, listEntries, 1.5, NaN]) assert.throws(() => encodeList([index]), { code: 'INTERNAL' })
  })

  it('is a credential of VCDM 2.0 with a short life', async () => {
    const credential = statusListCredential({ baseUrl, issuer, purpose: 'suspension', list: 1, set: [5], now })
    _checkCredential({ credential, now: new Date(now) })
    await expanded(credential)
    assert.equal(credential.id, 'https://verify.example/api/status/suspension/1')
    assert.equal(credential.credentialSubject.ttl, 300_000)
    assert.equal(credential.validUntil, '2026-11-20T10:30:20Z')
  })
})

describe('the status of a signed passport', async () => {
  const keys = keysOf(await generateIssuerKeys())
  const signer = createSigner({ did, keys })
  const index = 94_567
  // The list library checks times against the clock of the machine.
  const today = Date.now()

  async function statusOf(
    suspended: readonly number[],
    revoked: readonly number[],
    { forge = (list: object) => list, profile = 'w3c' as SignedProfile } = {},
  ) {
    const purposes = [['suspension', suspended] as const, ['revocation', revoked] as const]
    const lists = await Promise.all(
      purposes.map(async ([purpose, set]) => {
        const list = statusListCredential({ baseUrl, issuer, purpose, list: 1, set, now: today })
        return [list.id, forge(await signer.addProof(list, today))] as const
      }),
    )
    const documentLoader = loaderWith({ ...documentsOf(keys), ...Object.fromEntries(lists) })
    const credential = await signer.addProof(
      snapshotOf(passportOf(sampleInput({ now: today })), { now: today, baseUrl, at: { list: 1, index }, profile }),
      today,
    )
    const { verified, results } = await checkStatus({ credential, documentLoader, suite: proofSuite() })
    return {
      verified,
      set: (results ?? []).filter((each) => each.status).map((each) => each.credentialStatus.statusPurpose),
    }
  }

  it('is read from the signed lists', async () => {
    assert.deepEqual(await statusOf([], [index - 1, index + 1]), { verified: true, set: [] })
    assert.deepEqual(await statusOf([index], []), { verified: true, set: ['suspension'] })
    assert.deepEqual(await statusOf([index], [index]), { verified: true, set: ['suspension', 'revocation'] })
  })

  it('is one entry in the form of UNTP', async () => {
    const profile = 'untp'
    assert.deepEqual(await statusOf([], [], { profile }), { verified: true, set: [] })
    assert.deepEqual(await statusOf([index], [index], { profile }), { verified: true, set: ['suspension'] })
  })

  it('is rejected from a list that was changed after signing', async () => {
    const cleared = (list: object) => ({ ...list, validUntil: '2099-01-01T00:00:00Z' })
    assert.equal((await statusOf([index], [], { forge: cleared })).verified, false)
  })
})

describe('a status index', () => {
  it('is given once and for ever', async () => {
    const { store } = tableStore()
    const indexOf = createStatusIndexes(store)
    assert.deepEqual(await indexOf(1n), await indexOf(1n))
    assert.notDeepEqual(await indexOf(1n), await indexOf(2n))
  })

  it('is random and another one when the first is taken', async () => {
    const { store, rows } = tableStore()
    const chosen = [7, 7, 7, 9]
    const indexOf = createStatusIndexes(store, () => chosen.shift() ?? 0)
    await indexOf(1n)
    await indexOf(2n)
    assert.deepEqual(
      [...rows.values()],
      [
        { list: 1, index: 7 },
        { list: 1, index: 9 },
      ],
    )
  })

  it('is found again where the store has lost it, by the secret alone', async () => {
    const indexesOf = (secret: Uint8Array | null, { store } = tableStore()) =>
      createStatusIndexes(store, statusCandidates(secret))
    const [secret, tokens] = [randomBytes(32), Array.from({ length: 50 }, (_none, token) => BigInt(token))]
    const all = (indexOf: ReturnType<typeof indexesOf>) => Promise.all(tokens.map(indexOf))
    const before = await all(indexesOf(secret))
    assert.deepEqual(await all(indexesOf(secret)), before)
    for (const other of [randomBytes(32), null]) {
      const shared = (await all(indexesOf(other))).filter(({ index }, at) => index === before[at]?.index)
      assert.ok(shared.length < 3, 'no other secret, and no public value, leads to it')
    }
    const withoutSecret = Array.from({ length: 20 }, () => statusCandidates(null)(7n, 0))
    assert.ok(new Set(withoutSecret).size > 15, 'one without a secret follows from no token')
    const { store, rows } = tableStore()
    const [first] = before
    assert.ok(first)
    rows.set(99n, first)
    const [second, again] = [await indexesOf(secret, { store, rows })(0n), tableStore()]
    assert.notDeepEqual(second, first)
    again.rows.set(99n, first)
    assert.deepEqual(
      await indexesOf(secret, again)(0n),
      second,
      'a place that was taken before leads to the same next one',
    )
  })

  it('is in the next list once the first is half full', async () => {
    const { store } = tableStore()
    const indexOf = createStatusIndexes({ ...store, newest: async () => ({ list: 1, taken: listEntries / 2 }) })
    assert.equal((await indexOf(1n)).list, 2)
  })

  it('counts the newest list rarely, and the more often the less room it has', async () => {
    const { store } = tableStore()
    let [counts, index] = [0, 0]
    const counted = (taken: number) => {
      const newest = async () => {
        counts += 1
        return { list: 3, taken }
      }
      return createStatusIndexes({ ...store, newest }, () => index++)
    }
    const indexOf = counted(0)
    for (let tokenId = 0n; tokenId < 1_024n; tokenId += 1n) assert.equal((await indexOf(tokenId)).list, 3)
    assert.equal(counts, 1)
    const last = counted(listEntries / 2 - 1)
    for (let tokenId = 2_000n; tokenId < 2_005n; tokenId += 1n) await last(tokenId)
    assert.equal(counts, 6)
  })

  it('is what the other process claimed, when two ask at once', async () => {
    const { store } = tableStore()
    const indexOf = createStatusIndexes(store)
    const [first, second] = await Promise.all([indexOf(1n), indexOf(1n)])
    assert.deepEqual(first, second)
  })

  it('ends with an error when the store refuses for ever', async () => {
    const indexOf = createStatusIndexes({ find: async () => null, claim: async () => false, newest: async () => null })
    await assert.rejects(indexOf(1n), { code: 'INTERNAL' })
  })
})

type Token = { readonly state: StateCode; readonly flags?: number; readonly list?: number }

/** A reader as the real one behaves: what was read lives until the token changes or the head is lost. A token is in list 1 unless it says. */
function world(tokens: Record<string, Token>) {
  const assets = new Map<bigint, { current: boolean }>()
  const memberOf = ([id, { list = 1 }]: [string, Token], at: number) => ({ tokenId: BigInt(id), list, index: at * 10 })
  const members = Object.entries(tokens).map(memberOf)
  const state = { reads: 0, hasHead: true, broken: false, delayMs: 0, now: 0, held: Promise.resolve() }
  const loads: number[] = []
  const bits = createStatusBits({
    now: () => state.now,
    store: {
      members: async (of, after) => {
        if (after === -1) loads.push(of)
        const page = members.filter(({ list, index }) => list === of && index > after).slice(0, 900)
        return page.map((member) => ({ ...member }))
      },
      size: async (of) => members.filter(({ list }) => list === of).length,
    },
    reader: {
      head: () => (state.hasHead ? {} : undefined),
      async read(tokenId) {
        state.reads += 1
        await state.held
        state.now += state.delayMs
        if (state.broken) throw new ServiceError('CHAIN_UNAVAILABLE', 'The chain could not be read.')
        state.hasHead = true
        const { state: code, flags = 0 } = tokens[String(tokenId)] ?? { state: 0 }
        const record = { owner: zeroAddress, timestamp: 1n, state: code, flags, reserved: 0 }
        const asset = { current: true, record }
        assets.set(tokenId, asset)
        return { asset }
      },
    },
  })
  return {
    state,
    bits,
    loads,
    change: (id: string, code: StateCode, flags = 0): void => {
      tokens[id] = { state: code, flags }
      const known = assets.get(BigInt(id))
      if (known !== undefined) known.current = false
    },
    add: (id: string, code: StateCode): void => {
      tokens[id] = { state: code }
      members.push(memberOf([id, tokens[id]], members.length))
    },
    /** Holds every read until the returned function is called. */
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      state.held = promise
      return resolve
    },
  }
}

describe('the bits of a status list', () => {
  it('are set for flagged and for recycled items, each in its own list', async () => {
    const { bits } = world({
      1: { state: 4 },
      2: { state: 5, flags: assetFlags.LOST },
      3: { state: 6 },
      4: { state: 6, flags: assetFlags.RECALL },
    })
    assert.deepEqual(await bits(1), { suspension: [10, 20, 30], revocation: [20, 30] })
    assert.equal(await bits(2), null)
  })

  it('are set for an opened seal, and taken back when the mark was wrong', async () => {
    const { bits, change } = world({ 1: { state: 4, flags: assetFlags.TAMPER }, 2: { state: 3 } })
    assert.deepEqual(await bits(1), { suspension: [0], revocation: [] })
    change('1', 4)
    assert.deepEqual(await bits(1), { suspension: [], revocation: [] })
  })

  it('are set for a token that the chain does not have, which may come back', async () => {
    const { bits, change } = world({ 1: { state: 0 }, 2: { state: 3 } })
    assert.deepEqual(await bits(1), { suspension: [0], revocation: [] })
    change('1', 1)
    assert.deepEqual(await bits(1), { suspension: [], revocation: [] })
  })

  it('are read again only for what has changed, and stay the same object while they stay the same', async () => {
    const { bits, change, state } = world({ 1: { state: 4 }, 2: { state: 4 }, 3: { state: 4 } })
    const first = await bits(1)
    assert.equal(await bits(1), first)
    assert.equal(state.reads, 3)
    change('2', 5, assetFlags.STOLEN)
    assert.deepEqual(await bits(1), { suspension: [10], revocation: [] })
    assert.equal(state.reads, 4)
    change('2', 4)
    assert.deepEqual(await bits(1), { suspension: [], revocation: [] })
  })

  it('are not valid without a current head', async () => {
    const { bits, state } = world({ 1: { state: 4 } })
    await bits(1)
    state.hasHead = false
    await bits(1)
    assert.equal(state.reads, 2)
  })

  it('include tokens that were added to the list', async () => {
    const { bits, add, state } = world({ 1: { state: 4 } })
    await bits(1)
    add('2', 6)
    assert.deepEqual(await bits(1), { suspension: [10], revocation: [10] })
    assert.equal(state.reads, 2, 'the one before is not read again')
  })

  it('are not guessed while the chain cannot be read', async () => {
    const { bits, change, state } = world({ 1: { state: 4 } })
    await bits(1)
    change('1', 5, assetFlags.LOST)
    state.broken = true
    await assert.rejects(bits(1), { code: 'CHAIN_UNAVAILABLE' })
    state.broken = false
    assert.deepEqual(await bits(1), { suspension: [0], revocation: [] })
  })

  it('of a slow list are made once for concurrent readers, and then rest for ten seconds at most', async () => {
    const { bits, change, state } = world({ 1: { state: 4 } })
    state.delayMs = 60_000
    const together = await Promise.all([bits(1), bits(1), bits(1)])
    assert.deepEqual([state.reads, new Set(together).size], [1, 1])
    change('1', 6)
    state.now += 9_999
    assert.equal(await bits(1), together[0])
    assert.equal(state.reads, 1)
    state.now += 1
    assert.deepEqual(await bits(1), { suspension: [0], revocation: [0] })
  })

  it('of a list that was made within 100 ms are made anew for each reader', async () => {
    const { bits, change, state } = world({ 1: { state: 4 } })
    state.delayMs = 100
    assert.deepEqual(await bits(1), { suspension: [], revocation: [] })
    change('1', 6)
    assert.deepEqual(await bits(1), { suspension: [0], revocation: [0] })
  })

  it('of a list that rests are not given while the chain cannot be read', async () => {
    const { bits, state } = world({ 1: { state: 4 } })
    state.delayMs = 200
    const made = await bits(1)
    Object.assign(state, { broken: true, hasHead: false })
    await assert.rejects(bits(1), { code: 'CHAIN_UNAVAILABLE' })
    state.broken = false
    assert.equal(await bits(1), made)
  })

  it('are read at most a thousand in one turn of the event loop, from pages', async () => {
    const count = 4_000
    const { bits, state } = world(
      Object.fromEntries(
        Array.from({ length: count }, (_none, id) => [id, { state: id < count - 1 ? 4 : 6 }] as const),
      ),
    )
    let [most, before, isOver] = [0, 0, false]
    const turn = () => {
      most = Math.max(most, state.reads - before)
      before = state.reads
      if (!isOver) setImmediate(turn)
    }
    setImmediate(turn)
    assert.deepEqual(await bits(1), { suspension: [10 * (count - 1)], revocation: [10 * (count - 1)] })
    isOver = true
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(before, count)
    assert.ok(most <= 1_000, String(most))
  })
})

describe('status lists in memory', () => {
  /** Lists of one token each, which has the number of its list. */
  const manyLists = () => world(Object.fromEntries([1, 2, 3, 4, 5].map((list) => [list, { state: 3, list }] as const)))

  it('are the few that were asked for last', async () => {
    const { bits, loads } = manyLists()
    for (const list of [1, 2, 3, 1, 2, 3]) await bits(list)
    assert.deepEqual(loads, [1, 2, 3])
    for (const list of [4, 1, 4]) await bits(list)
    assert.deepEqual(loads, [1, 2, 3, 4, 1])
  })

  it('have the bits of the present chain, also when they are loaded again', async () => {
    const { bits, change, loads } = manyLists()
    const first = await bits(1)
    for (const list of [2, 3, 4]) await bits(list)
    assert.equal(await bits(1), first, 'the same object, so that its signed copy serves')
    for (const list of [2, 3, 4]) await bits(list)
    change('1', 3, assetFlags.STOLEN)
    assert.deepEqual(await bits(1), { suspension: [0], revocation: [] })
    change('4', 3, assetFlags.STOLEN)
    assert.deepEqual(await bits(4), { suspension: [30], revocation: [] })
    assert.equal(loads.filter((list) => list === 1).length, 3)
  })

  it('are loaded one at a time, however many are asked for at once', async () => {
    const { bits, loads, hold } = manyLists()
    const release = hold()
    const asked = [1, 2, 3, 4, 5].map((list) => bits(list))
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(loads, [1])
    release()
    assert.equal((await Promise.all(asked)).length, 5)
    assert.deepEqual(loads, [1, 2, 3, 4, 5])
  })

  it('do not keep one in memory waiting for one that is loaded', async () => {
    const { bits, hold } = manyLists()
    const first = await bits(1)
    const release = hold()
    const loading = bits(2)
    assert.equal(await bits(1), first)
    release()
    await loading
  })
})

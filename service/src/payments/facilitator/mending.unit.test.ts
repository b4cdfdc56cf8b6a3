/** A tracker mends the transactions of several accounts that stay out, where providers may disagree (spec §4.8). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { one, trackerOf, two } from '../../../test/support/payments/tracker.ts'
import { until } from '../../../test/support/wait.ts'
import { RpcError } from '../../chain/rpc/answer.ts'

describe('a tracker of several accounts', () => {
  const refusal = (message: string) => new RpcError('rejected', message, {})

  it('finds a transaction by any of its hashes, and stores it once', async () => {
    for (const which of [0, 1, 2]) {
      const { tracker, track, noted, minedHashes } = trackerOf()
      await using _tracker = tracker
      const { found, hashes, tracking } = track(one, 5, { hashes: 3 })
      assert.equal(tracker.track(tracking), found)
      assert.equal(tracker.find(5n), found)
      minedHashes.add(hashes[which])
      const mined = await found
      assert.equal(mined !== 'lost' && mined.transaction, hashes[which])
      assert.deepEqual([noted.mined, tracker.size(), tracker.followed(), tracker.find(5n)], [[5n], 0, [], undefined])
    }
  })

  it('finds a transaction although the database does not store that, and follows the next one', async () => {
    const { tracker, track, minedHashes, fails } = trackerOf()
    await using _tracker = tracker
    fails.mined = true
    for (const nonce of [5, 6]) {
      const { found, raw } = track(one, nonce)
      minedHashes.add(raw)
      assert.notEqual(await found, 'lost')
      assert.equal(tracker.size(), 0)
    }
  })

  it('asks once for a receipt while no block comes, and again for a block of the same number', async () => {
    const { tracker, track, noted, minedHashes } = trackerOf({ isStill: true })
    await using _tracker = tracker
    const { raw, found } = track(one, 5)
    await until(() => noted.looks === 1)
    const another = track(one, 6)
    await until(() => noted.looks === 2)
    track(one, 7)
    await until(() => noted.looks === 3)
    for (const hash of [raw, another.raw]) minedHashes.add(hash)
    noted.branch = 1
    assert.notEqual(await found, 'lost')
    assert.notEqual(await another.found, 'lost')
    assert.ok(noted.looks <= 6, `${noted.looks} looks`)
  })

  it('asks again for a receipt that it could not read, although no block comes', async () => {
    const { tracker, track, noted, minedHashes, unread } = trackerOf({ isStill: true })
    await using _tracker = tracker
    const { raw, found } = track(one, 5)
    await until(() => noted.looks === 1)
    unread.add(raw)
    noted.branch = 1
    await until(() => noted.looks > 2)
    unread.clear()
    minedHashes.add(raw)
    assert.notEqual(await found, 'lost')
  })

  it('mends nothing whose receipt it cannot read, however many blocks come', async () => {
    const { tracker, track, blocks, noted, unread } = trackerOf()
    await using _tracker = tracker
    for (const nonce of [4, 5, 7]) unread.add(track(one, nonce).raw)
    await blocks(30n)
    assert.deepEqual([noted.sent, noted.resigned, noted.lost, noted.gaps], [[], [], [], []])
  })

  it('mends by the count of the account, and fills its gap whatever the other one has', async () => {
    const { tracker, track, counts, noted } = trackerOf()
    await using _tracker = tracker
    counts.set(two, () => 6)
    const [behind, lowest] = [track(one, 7), track(two, 6)]
    await until(() => noted.resigned.length > 1 && noted.sent.includes(behind.raw))
    assert.deepEqual(new Set(noted.gaps.map(String)), new Set([String([one, 5])]))
    assert.deepEqual(new Set(noted.resigned.map(([pk]) => pk)), new Set([6n]))
    assert.ok(noted.sent.includes(lowest.raw))
  })

  it('sends what is stuck behind one that it cannot sign', async () => {
    const { tracker, track, noted, fails } = trackerOf()
    await using _tracker = tracker
    fails.resign.add(5)
    const [lowest, behind] = [track(one, 5), track(one, 6)]
    await until(() => noted.sent.includes(behind.raw))
    assert.ok(!noted.sent.includes(lowest.raw))
  })

  it('sends a transaction again three blocks later each time, and where no block comes after a time', async () => {
    const { tracker, track, noted } = trackerOf()
    await using _tracker = tracker
    const { raw } = track(one, 5)
    await until(() => noted.sentAt.length > 5)
    const pauses = noted.sentAt.slice(1, 6).map((number, index) => number - (noted.sentAt[index] ?? 0n))
    assert.deepEqual(pauses, [3n, 3n, 3n, 3n, 3n])
    const still = trackerOf({ isStill: true, stuckMs: 1 })
    await using _still = still.tracker
    still.track(one, 5)
    await until(() => still.noted.sent.length > 1)
    assert.deepEqual(new Set([...noted.sent, ...still.noted.sent]), new Set([raw]))
  })

  it('signs the lowest one anew by what became of the newest one, which it sends and looks for from then on', async () => {
    const { tracker, track, noted, minedHashes, fails, replacements } = trackerOf()
    await using _tracker = tracker
    const { raw, found } = track(one, 5)
    const next = async () => {
      const { length } = noted.resigned
      await until(() => noted.resigned.length > length)
      return noted.resigned.at(-1)?.[1].refusal
    }
    assert.equal(await next(), undefined)
    fails.send = refusal('insufficient funds for gas * price + value')
    await next()
    assert.equal(await next(), 'unfunded')
    fails.send = refusal('replacement transaction underpriced')
    await next()
    assert.equal(await next(), 'underpriced')
    fails.send = undefined
    await next()
    assert.equal(await next(), undefined)
    const replacement = '0xee'
    replacements.push(replacement)
    await until(() => noted.sent.at(-1) === replacement)
    minedHashes.add(replacement)
    const mined = await found
    assert.deepEqual([mined !== 'lost' && mined.transaction, noted.replaced], [replacement, [replacement]])
    assert.deepEqual(new Set(noted.sent), new Set([raw, replacement]))
  })

  it('signs one anew as expired from the time on until which its payments are valid', async () => {
    const { tracker, track, noted } = trackerOf()
    await using _tracker = tracker
    track(one, 5, { validBefore: 60n * (noted.number + 10n) })
    await until(() => noted.resigned.length > 5)
    const ends = noted.resigned.map(([, { isExpired }]) => isExpired)
    assert.deepEqual(ends.slice(0, 6), [false, false, true, true, true, true])
  })

  it('gives up none behind another while its payments are valid', async () => {
    const { tracker, track, noted, blocks } = trackerOf()
    await using _tracker = tracker
    track(one, 5)
    track(one, 6)
    track(one, 7, { validBefore: 0n })
    await until(() => noted.lost.length > 0)
    await blocks(30n)
    assert.deepEqual(noted.lost, [7n])
  })

  it('gives up a used nonce after a minute in which the count always said so', async () => {
    const { tracker, track, noted, counts } = trackerOf({ secondsPerBlock: 2n })
    await using _tracker = tracker
    const from = noted.number
    counts.set(one, (block) => (block < from + 20n || block > from + 30n ? 6 : 5))
    track(two, 100)
    assert.equal(await track(one, 5).found, 'lost')
    assert.ok(noted.number > from + 60n, `lost ${noted.number - from} blocks later`)
    assert.deepEqual([noted.resigned.some(([pk]) => pk === 5n), noted.lost, tracker.followed()], [true, [5n], [100n]])
  })

  it('leaves to other processes what it follows when it ends, and nothing else', async () => {
    const { tracker, track, noted, minedHashes } = trackerOf()
    const done = track(one, 5)
    minedHashes.add(done.raw)
    await done.found
    const left = [track(one, 6), track(two, 100)]
    await tracker[Symbol.asyncDispose]()
    for (const { found } of left) await assert.rejects(found, /closing/)
    assert.deepEqual([noted.released, tracker.size()], [[6n, 100n], 0])
    const { looks } = noted
    await new Promise(setImmediate)
    assert.equal(noted.looks, looks)
  })
})

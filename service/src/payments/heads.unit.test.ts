/** This clock beside the chain's (decisions/0010): a wrong one is found, and an old block alone proves nothing. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { RpcClient } from '../chain/rpc/client.ts'
import { GatewayFault } from './errors.ts'
import { createHeads } from './heads.ts'

const now = 1_800_000_000
type Times = { readonly latest: number; readonly pending?: number | undefined }

/** A provider whose blocks have these times, one after the other; the last ones stay. Left out: it has no pending block. */
function headsAt(times: readonly Times[], clock = now) {
  let reads = 0
  const rpc: RpcClient = async (_method, params = []) => {
    const isLatest = params[0] === 'latest'
    const { latest, pending } = times[Math.min(reads, times.length - 1)] as Times
    if (!isLatest) reads += 1
    const time = isLatest ? latest : pending
    if (time === undefined) throw new Error('no pending block')
    return { number: '0x1', hash: `0x${'1'.repeat(64)}`, timestamp: `0x${time.toString(16)}`, baseFeePerGas: '0x1' }
  }
  return createHeads(rpc, () => clock * 1000)
}

describe('the clock of the gateway', () => {
  for (const [what, times, error] of [
    ['is right where blocks are new', [{ latest: now - 2 }], 0n],
    ['is right where the chain is idle and the pending block is new', [{ latest: now - 86_400, pending: now }], 0n],
    [
      'is right where the pending block is missing at first',
      [{ latest: now - 900 }, { latest: now - 900, pending: now }],
      0n,
    ],
    ['is right where a rare block comes', [{ latest: now - 900 }, { latest: now - 1 }], 0n],
    [
      'is ahead where the pending block goes on',
      [
        { latest: 1, pending: now - 300 },
        { latest: 1, pending: now - 299 },
      ],
      299n,
    ],
    ['is ahead where blocks go on without a pending one', [{ latest: now - 300 }, { latest: now - 298 }], 298n],
    [
      'is ahead where the pending block is the latest',
      [
        { latest: now - 90, pending: now - 90 },
        { latest: now - 88, pending: now - 88 },
      ],
      88n,
    ],
    ['is behind', [{ latest: now + 61 }], -61n],
    ['is behind where the chain is idle', [{ latest: now - 900, pending: now + 300 }], -300n],
  ] satisfies [string, Times[], bigint][])
    it(what, async () => assert.equal(await headsAt(times).clockError(), error))

  it('is not accused by a chain that stands still', async () => {
    assert.equal(await headsAt([{ latest: now - 900, pending: now - 898 }]).clockError(), 0n)
  })

  it('stops a sale where it is off, and is not read at the chain where a new block shows that it is right', async () => {
    const ahead = headsAt([{ latest: now - 300 }, { latest: now - 300 }, { latest: now - 298 }])
    await assert.rejects(ahead.headOnTime(), (fault) => fault instanceof GatewayFault && fault.error === 'not_ready')
    assert.equal((await headsAt([{ latest: now - 60 }]).headOnTime()).timestamp, BigInt(now - 60))
  })

  it('is said to be behind where a sale is stopped for it', async () => {
    const cause = 'This clock is 300 s behind the chain.'
    await assert.rejects(headsAt([{ latest: now + 300 }]).headOnTime(), { cause })
  })

  it('counts as right for two minutes after a look, and not where it was set meanwhile', async () => {
    let wall = now * 1_000
    const block = { timestamp: `0x${now.toString(16)}`, number: '0x1', baseFeePerGas: '0x1' }
    const heads = createHeads(
      async () => block,
      () => wall,
    )
    assert.equal(heads.isClockRight(), false)
    assert.equal(await heads.clockError(), 0n)
    const isRightAfter = (ms: number) => ((wall = now * 1_000 + ms), heads.isClockRight())
    assert.deepEqual([0, 119_000, 121_000, -121_000].map(isRightAfter), [true, true, false, false])
    wall = (now - 61) * 1_000
    await heads.clockError()
    assert.equal(heads.isClockRight(), false)
  })

  it('is unknown where no block can be read', async () => {
    const heads = createHeads(async () => null)
    await assert.rejects(heads.clockError())
  })
})

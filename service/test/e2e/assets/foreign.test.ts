/** A contract that is not ours: the existing public deployment's reads, without getAssets, with Multicall3 (spec §1, §2.5, §4.1). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { recheck, type Verdict } from '@touchstone/verdict'
import { encodeFunctionData } from 'viem'
import foreign from '../../../../contracts/artifacts/ForeignCore.json' with { type: 'json' }
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import { transact } from '../../../src/chain/devchain/transact.ts'
import { createRpcClient, type RpcClient } from '../../../src/chain/rpc/client.ts'
import { startWorld, type World } from '../../support/world.ts'

const core = '0x00000000000000000000000000000000f0e1d2c3'
const [account = '0x'] = publishedAddresses

describe('a foreign contract', () => {
  let world: World
  before(async () => {
    world = await startWorld({ env: { CHAIN_CONTRACT: core, CHAIN_INTERFACE: 'auto' }, rpcUrl: deployForeign })
  })
  after(() => world.end())

  it('is read through Multicall3, many tokens in few calls, and its verdicts recheck', async () => {
    const ask = async (id: number) => (await (await world.get(`/api/asset/${id}`)).json()) as Verdict
    const [minted, bound, stolen] = (await Promise.all([ask(1), ask(2), ask(3)])) as [Verdict, Verdict, Verdict]
    assert.deepEqual([minted.state, bound.state, stolen.state], ['MINTED', 'BOUND', 'FLAGGED'])
    assert.deepEqual([stolen.flagged, stolen.authentic, 'untrusted' in minted], [true, false, false])
    assert.ok((await recheck(stolen, { rpcUrl: world.chainUrl, contract: stolen.chainRef.contract })).ok)
    assert.equal((await world.get('/api/asset/4')).status, 404)
  })

  it('shows a change with the next block, although it came without an event', async () => {
    await call(world.rpc, 'setAsset', [1n, account, 2n, 6, 0, 0])
    await new Promise((resolve) => setTimeout(resolve, 1_100)) // the head is cached for at most 1 s
    const verdict = (await (await world.get('/api/asset/1')).json()) as Verdict
    assert.deepEqual([verdict.state, verdict.authentic], ['RECYCLED', false])
  })
})

async function deployForeign(url: string): Promise<string> {
  const rpc = createRpcClient({ url, timeoutMs: 60_000 })
  await rpc('anvil_setCode', [core, foreign.deployedBytecode])
  for (const id of [1n, 2n, 3n]) await call(rpc, 'mint', [account, id, `0x${'12'.repeat(32)}`])
  await call(rpc, 'bindTag', [2n, `0x${'34'.repeat(32)}`])
  await call(rpc, 'setAsset', [3n, account, 1n, 5, 0x02, 4])
  return url
}

function call(rpc: RpcClient, functionName: string, args: readonly unknown[]): Promise<void> {
  const data = encodeFunctionData({ abi: foreign.abi, functionName, args })
  return transact(rpc, functionName, { from: account, to: core, data })
}

/** A contract that is not ours: the existing public deployment's reads, without getAssets, with Multicall3 (spec §1, §2.5, §4.1). */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { recheck, type Verdict } from '@touchstone/verdict'
import { encodeFunctionData, type Hex } from 'viem'
import foreign from '../../../../contracts/artifacts/ForeignCore.json' with { type: 'json' }
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import { createLog } from '../../../src/lib/log.ts'
import { readConfig } from '../../../src/app/config/config.ts'
import { startService, type Service } from '../../../src/app/service.ts'
import { startWorld, type World } from '../../support/world.ts'
import { until } from '../../support/wait.ts'

const core = '0x00000000000000000000000000000000f0e1d2c3'
const [account = '0x'] = publishedAddresses

describe('a foreign contract', () => {
  let world: World
  let service: Service
  let env: Record<string, string>
  before(async () => {
    world = await startWorld()
    await world.rpc('anvil_setCode', [core, foreign.deployedBytecode])
    for (const id of [1n, 2n, 3n]) await call('mint', [account, id, `0x${'12'.repeat(32)}`])
    await call('bindTag', [2n, `0x${'34'.repeat(32)}`])
    await call('setAsset', [3n, account, 1n, 5, 0x02, 4])
    env = {
      ...world.settings,
      CHAIN_CONTRACT: core,
      CHAIN_INTERFACE: 'auto',
      DATA_DIR: await mkdtemp(join(tmpdir(), 'touchstone-foreign-')),
    }
    service = await startService(
      readConfig(env),
      createLog(() => {}, 'silent'),
    )
  })
  after(async () => {
    await service.close(200)
    await rm(env['DATA_DIR'] ?? '', { recursive: true })
    await world.end()
  })

  async function call(functionName: string, args: readonly unknown[]): Promise<void> {
    const data = encodeFunctionData({ abi: foreign.abi, functionName, args })
    const hash = (await world.rpc('eth_sendTransaction', [{ from: account, to: core, data }])) as Hex
    await until(async () => (await world.rpc('eth_getTransactionReceipt', [hash])) !== null)
  }

  it('is read through Multicall3, many tokens in few calls, and its verdicts recheck', async () => {
    const ask = async (id: number) =>
      (await (await fetch(`${service.urls.verification}/api/asset/${id}`)).json()) as Verdict
    const [minted, bound, stolen] = (await Promise.all([ask(1), ask(2), ask(3)])) as [Verdict, Verdict, Verdict]
    assert.deepEqual([minted.state, bound.state, stolen.state], ['MINTED', 'BOUND', 'FLAGGED'])
    assert.deepEqual([stolen.flagged, stolen.authentic, 'untrusted' in minted], [true, false, false])
    assert.ok((await recheck(stolen, { rpcUrl: world.chainUrl })).ok)
    assert.equal((await fetch(`${service.urls.verification}/api/asset/4`)).status, 404)
  })

  it('shows a change with the next block, although it came without an event', async () => {
    await call('setAsset', [1n, account, 2n, 6, 0, 0])
    await new Promise((resolve) => setTimeout(resolve, 1_100)) // the head is believed for at most 1 s
    const verdict = (await (await fetch(`${service.urls.verification}/api/asset/1`)).json()) as Verdict
    assert.deepEqual([verdict.state, verdict.authentic], ['RECYCLED', false])
  })
})

import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { keccak256, toBytes } from 'viem'
import { deployments, type Hex } from '@touchstone/verdict'
import { deployVersion1 } from '../../../test/support/version-1.ts'
import { startTestChain } from '../../../test/support/test-chain.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { assetRegistryAbi } from '../../domain/registry-abi.ts'
import { isPublishedAddress, publishedAccounts, publishedAddresses } from '../../domain/published-accounts.ts'
import { deployLocal, type LocalDeployment } from './deploy.ts'
import type { RpcClient } from '../rpc/client.ts'
import { readContract } from '../rpc/contract.ts'

describe('the registry on the local chain', () => {
  const chain = useOpened(startTestChain)
  let rpc: RpcClient
  let deployment: LocalDeployment
  before(async () => {
    rpc = chain.rpc
    deployment = await deployLocal({ rpcUrl: chain.url })
  })

  it('stands at the address that account 0 deploys to first, with the code hash that the chain has', async () => {
    assert.equal(deployment.contract, '0x5fbdb2315678afecb367f032d93f642f64180aa3')
    assert.equal(deployment.codeHash, keccak256((await rpc('eth_getCode', [deployment.contract, 'latest'])) as Hex))
    assert.equal(deployment.deployBlock, 1n)
  })

  it('is deployed once', async () => {
    assert.deepEqual(await deployLocal({ rpcUrl: chain.url }), deployment)
    assert.equal(await rpc('eth_blockNumber'), '0x1')
  })

  it('gives account 0 every role but ATTESTER, and account 1 that one alone', async () => {
    const roles = ['ISSUER', 'BINDER', 'QA', 'GUARDIAN', 'RECYCLER', 'ATTESTER']
    for (const [index, account] of publishedAddresses.slice(0, 2).entries()) {
      const held = await Promise.all(roles.map((role) => hasRole(rpc, deployment.contract, `${role}_ROLE`, account)))
      assert.deepEqual(
        held,
        index === 0 ? [true, true, true, true, true, false] : [false, false, false, false, false, true],
      )
    }
  })

  it('has a Multicall3 where every chain has it', async () => {
    const code = await rpc('eth_getCode', ['0xcA11bde05977b3631167028862bE2a173976CA11', 'latest'])
    assert.ok(typeof code === 'string' && code.length > 1000)
  })

  it('may be version 1, as an earlier release made it', async () => {
    const old = await startTestChain()
    try {
      await deployVersion1(old)
      const { contract, codeHash, deployBlock } = await deployLocal({ rpcUrl: old.url })
      assert.deepEqual([contract, deployBlock], [deployment.contract, 1n])
      assert.equal(codeHash, deployments['local-v1'].codeHash)
    } finally {
      await old.close()
    }
  })

  it('is rejected in one sentence when it is another version', async () => {
    const code = await rpc('eth_getCode', [deployment.contract, 'latest'])
    await rpc('anvil_setCode', [deployment.contract, '0x5f5ffd'])
    await assert.rejects(deployLocal({ rpcUrl: chain.url }), {
      message: /^The local chain holds another version of the registry contract\. .*\.$/,
    })
    await rpc('anvil_setCode', [deployment.contract, code])
  })
})

describe("anvil's published accounts", () => {
  it('are the ten that anvil prints, in either case of letters', () => {
    assert.deepEqual(
      publishedAccounts(10).map(({ address }) => address.toLowerCase()),
      publishedAddresses,
    )
    assert.ok(isPublishedAddress('0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'))
    assert.ok(!isPublishedAddress(`0x${'1'.repeat(40)}`))
  })
})

function hasRole(rpc: RpcClient, to: Hex, role: string, account: Hex): Promise<boolean> {
  const args = [keccak256(toBytes(role)), account] as const
  return readContract(rpc, { to, abi: assetRegistryAbi, functionName: 'hasRole', args })
}

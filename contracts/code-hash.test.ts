import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, describe, it } from 'node:test'
import { createPublicClient, createWalletClient, encodeDeployData, http, keccak256, type Hex } from 'viem'
import { baseSepolia } from 'viem/chains'
import { deployments } from '@touchstone/verdict'
import { assetRegistryAbi } from '../service/src/domain/registry-abi.ts'
import { registryCodeHash } from './code-hash.ts'

const [bytecode, bytecodeV1] = ['AssetRegistry', 'AssetRegistryV1'].map(
  (name) => JSON.parse(readFileSync(join(import.meta.dirname, `artifacts/${name}.json`), 'utf8')).bytecode as Hex,
) as [Hex, Hex]

describe('a deployed AssetRegistry', () => {
  let anvil: ChildProcess
  let url: string

  before(async () => {
    const manifest = `@foundry-rs/anvil-${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}/package.json`
    const binary = join(dirname(createRequire(import.meta.url).resolve(manifest)), 'bin/anvil')
    anvil = spawn(binary, ['--port', '0', '--chain-id', '84532'], { stdio: ['ignore', 'pipe', 'inherit'] })
    url = await listeningAt(anvil)
  })
  after(() => anvil.kill('SIGKILL'))

  it('has the code hash computed from the artifact, wherever it stands', async () => {
    const reader = createPublicClient({ transport: http(url) })
    const [first, second, old] = [await deploy(url), await deploy(url), await deploy(url, bytecodeV1)]
    for (const [address, version] of [[first, '2'] as const, [second, '2'] as const, [old, '1'] as const]) {
      const code = (await reader.getCode({ address })) ?? '0x'
      assert.equal(registryCodeHash({ chainId: 84532n, address }, version), keccak256(code))
    }
    assert.notEqual(
      registryCodeHash({ chainId: 84532n, address: first }),
      registryCodeHash({ chainId: 1n, address: first }),
    )
  })

  it('of the local chain has the published code hash, in both versions', () => {
    for (const [name, version] of [['local', '2'] as const, ['local-v1', '1'] as const]) {
      const { contract: address, codeHash } = deployments[name]
      assert.equal(codeHash, registryCodeHash({ chainId: 84532n, address }, version))
    }
  })

  it('answers through the generated ABI', async () => {
    const reader = createPublicClient({ transport: http(url) })
    const contract = { address: await deploy(url), abi: assetRegistryAbi }
    const nothing = ['0x0000000000000000000000000000000000000000', 0n, 0, 0, 0]
    assert.deepEqual(await reader.readContract({ ...contract, functionName: 'getAsset', args: [7n] }), nothing)
    assert.deepEqual(await reader.readContract({ ...contract, functionName: 'getAssets', args: [[1n, 2n]] }), [0n, 0n])
    assert.equal(
      await reader.readContract({ ...contract, functionName: 'supportsInterface', args: ['0x6c6458f1'] }),
      true,
    )
  })
})

async function listeningAt(child: ChildProcess): Promise<string> {
  assert.ok(child.stdout !== null)
  for await (const line of createInterface({ input: child.stdout })) {
    const found = /^Listening on (\S+)$/.exec(line)
    if (found === null) continue
    // Read on, or a full pipe would stop the chain.
    child.stdout.resume()
    return `http://${found[1]}`
  }
  throw new Error('anvil ended before it listened.')
}

/** From one of anvil's own unlocked accounts, which holds every role. */
async function deploy(url: string, code = bytecode): Promise<Hex> {
  const wallet = createWalletClient({ chain: baseSepolia, transport: http(url) })
  const [account] = await wallet.getAddresses()
  assert.ok(account !== undefined)
  const holders = {
    admin: account,
    issuer: account,
    binder: account,
    qa: account,
    attester: account,
    guardian: account,
    recycler: account,
  }
  const data = encodeDeployData({ abi: assetRegistryAbi, bytecode: code, args: [holders, '', ''] })
  // viem waits for the next block where it has missed this one.
  const request = { method: 'eth_sendTransactionSync', params: [{ from: account, data, gas: '0x1c9c380' }] } as never
  const { contractAddress }: { contractAddress?: Hex } = await wallet.request(request)
  assert.ok(contractAddress)
  return contractAddress
}

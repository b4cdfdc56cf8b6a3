/** A real local chain with the registry on it, for the tests of the client library. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'
import {
  type AssetRecord,
  createRpc,
  type EthProof,
  getAssetCall,
  type ProofBundle,
  recordOfGetAsset,
  recordSlot,
  type Rpc,
  type RpcHeader,
  type Verdict,
  verdictOf,
  wordOfRecord,
} from '../src/index.ts'
import { abiEncode, type Hex, hexOf, keccak256, word } from '../src/lib/hex.ts'

/** The operator of the registry: anvil's first account, which holds every role. */
export const operator: Hex = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266'

/** A record that is claimed by the operator. */
export const claimed = { owner: operator, timestamp: 1n, state: 4, flags: 0, reserved: 0 } as const

export type TestChain = AsyncDisposable & {
  rpcUrl: string
  rpc: Rpc
  /** The registry, and keccak256 of its code. */
  contract: Hex
  codeHash: Hex
  /** Sends a transaction of the operator to the registry, one block each: signature and words. */
  send: (signature: string, ...values: bigint[]) => Promise<void>
  /** Writes any record, reachable by the contract's rules or not, and mines a block. */
  store: (tokenId: bigint, record: AssetRecord) => Promise<void>
  /** The latest block. */
  head: () => Promise<RpcHeader>
  /** The verdict on a token at the head, made as the service makes it. */
  verdict: (tokenId: bigint) => Promise<Verdict>
  /** The proof bundle of a token at the head; `slot` is proved instead of that of its record. */
  bundle: (tokenId: bigint, slot?: Hex) => Promise<ProofBundle>
}

/** `nonce` is the operator's when it deploys the registry; another one gives another address. */
export async function startChain({ nonce = 0 } = {}): Promise<TestChain> {
  const options = '--chain-id 84532 --prune-history 256 --slots-in-an-epoch 1 --port 0'.split(' ')
  // The shell ends anvil when its input closes, so however this process ends.
  const guard = '"$@" & cat > /dev/null; kill $!; wait $!'
  const anvil = spawn('sh', ['-c', guard, 'sh', anvilBinary(), ...options], { stdio: ['pipe', 'pipe', 'ignore'] })
  const rpcUrl = await new Promise<string>((resolve, reject) => {
    anvil.once('exit', () => reject(new Error('anvil did not start')))
    createInterface(anvil.stdout).on('line', (line) => {
      const [, address] = /^Listening on (\S+)/.exec(line) ?? []
      if (address !== undefined) resolve(`http://${address}`)
    })
  })
  const rpc = createRpc({ url: rpcUrl, timeoutMs: 60_000 })
  if (nonce > 0) await rpc('anvil_setNonce', [operator, `0x${nonce.toString(16)}`])
  const receipt = await transact(rpc, { data: `0x${deployment()}` })
  const contract = receipt['contractAddress'] as Hex
  const code = (await rpc('eth_getCode', [contract, 'latest'])) as Hex
  const codeHash = keccak256(Buffer.from(code.slice(2), 'hex'))
  const head = async () => (await rpc('eth_getBlockByNumber', ['latest', false])) as RpcHeader

  async function verdict(tokenId: bigint): Promise<Verdict> {
    const { hash, number } = (await head()) as { hash: Hex; number: Hex }
    const data = await rpc('eth_call', [{ to: contract, data: getAssetCall(tokenId) }, { blockHash: hash }])
    const record = recordOfGetAsset(data as Hex)
    const made =
      record && verdictOf({ record, tokenId, block: { number: BigInt(number), hash }, contract, chainId: 84532 })
    assert.ok(made, `token ${tokenId} has no record`)
    return made
  }

  async function bundle(tokenId: bigint, slot: Hex = recordSlot(tokenId)): Promise<ProofBundle> {
    const header = await head()
    const answer = await rpc('eth_getProof', [contract, [slot], { blockHash: header['hash'] }])
    const { accountProof, storageProof } = answer as EthProof
    const proof = { header, accountProof, storageProof, recordsSlot: 3, codeHash }
    return { version: '1', verdict: await verdict(tokenId), proof }
  }

  return {
    rpcUrl,
    rpc,
    contract,
    codeHash,
    head,
    verdict,
    bundle,
    send: async (signature, ...values) => {
      const selector = keccak256(Buffer.from(signature)).slice(0, 10)
      await transact(rpc, { to: contract, data: `${selector}${hexOf(abiEncode(...values)).slice(2)}` })
    },
    store: async (tokenId, record) => {
      await rpc('anvil_mine', ['0x1']) // anvil alters the head's own state: let that be a block that no verdict names
      await rpc('anvil_setStorageAt', [contract, recordSlot(tokenId), `0x${word(wordOfRecord(record))}`])
      await rpc('anvil_mine', ['0x1'])
    },
    [Symbol.asyncDispose]: async () => {
      anvil.stdin.end()
      if (anvil.exitCode === null) await once(anvil, 'exit')
    },
  }
}

/** Creation code and constructor arguments: seven role holders and two empty texts. */
function deployment(): string {
  const file = new URL('../../contracts/artifacts/AssetRegistry.json', import.meta.url)
  const { bytecode } = JSON.parse(readFileSync(file, 'utf8')) as { bytecode: string }
  const holders = Array<bigint>(7).fill(BigInt(operator))
  const texts = [9n * 32n, 10n * 32n, 0n, 0n] // two offsets, two lengths
  return bytecode.replace(/^0x/, '') + hexOf(abiEncode(...holders, ...texts)).slice(2)
}

async function transact(rpc: Rpc, transaction: { to?: Hex; data: string }): Promise<Record<string, unknown>> {
  // The plain form answers before the block is made.
  const sent = await rpc('eth_sendTransactionSync', [{ from: operator, gas: '0xe4e1c0', ...transaction }])
  const receipt = sent as Record<string, unknown>
  assert.equal(receipt['status'], '0x1', 'the transaction reverted')
  return receipt
}

/** The real binary, so that signals arrive. */
function anvilBinary(): string {
  const { platform, arch } = process
  const from = createRequire(import.meta.url)
  const name = `@foundry-rs/anvil-${platform}-${arch === 'x64' ? 'amd64' : arch}`
  const file = from.resolve(`${name}/package.json`).replace('package.json', 'bin/anvil')
  assert.ok(existsSync(file), 'anvil is not installed')
  return file
}

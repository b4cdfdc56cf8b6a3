import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import {
  createPublicClient,
  createWalletClient,
  domainSeparator,
  http,
  parseAbi,
  parseEventLogs,
  parseSignature,
  type Hex,
} from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { startTestChain } from '../../../test/support/test-chain.ts'
import { pinnedReads } from '../../../test/support/local-reads.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { publishedAccounts, publishedAddresses } from '../../domain/published-accounts.ts'
import { deployLocal } from './deploy.ts'
import { installTestMoney, usdcAddress } from './test-money.ts'
import type { RpcClient } from '../rpc/client.ts'

const domain = { name: 'USDC', version: '2', chainId: 84532, verifyingContract: usdcAddress } as const
const types = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const
const abi = parseAbi([
  'function name() view returns (string)',
  'function version() view returns (string)',
  'function decimals() view returns (uint8)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function balanceOf(address) view returns (uint256)',
  'function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)',
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
])
const payer = privateKeyToAccount(generatePrivateKey())
const seller = `0x${'5e'.repeat(20)}` as const

describe('the money of the local chain', () => {
  const chain = useOpened(startTestChain)
  let rpc: RpcClient
  let reader: ReturnType<typeof readerOf>
  before(async () => {
    rpc = chain.rpc
    reader = readerOf(chain.url)
    await installTestMoney({ rpcUrl: chain.url, fund: [{ address: payer.address, amount: 1_000_000n }] })
    await deployLocal({ rpcUrl: chain.url })
  })

  it('is USDC with the signing domain that buyers use', async () => {
    const read = <const Name extends 'name' | 'version' | 'decimals' | 'DOMAIN_SEPARATOR'>(functionName: Name) =>
      reader.readContract({ address: usdcAddress, abi, functionName })
    assert.equal(await read('name'), 'USDC')
    assert.equal(await read('version'), '2')
    assert.equal(await read('decimals'), 6)
    assert.equal(await read('DOMAIN_SEPARATOR'), domainSeparator({ domain: { ...domain, chainId: 84532n } }))
  })

  it('is there already the second time: no block, no more money', async () => {
    const head = await rpc('eth_blockNumber')
    await installTestMoney({ rpcUrl: chain.url, fund: [{ address: payer.address, amount: 1_000_000n }] })
    assert.equal(await rpc('eth_blockNumber'), head)
    assert.equal(await balanceOf(payer.address), 1_000_000n)
  })

  it('leaves the registry where it always is, and every block provable', async () => {
    assert.ok((await pinnedReads(chain.url)).length >= 3)
    assert.equal(await rpc('eth_getTransactionCount', [publishedAddresses[0], 'latest']), '0x1')
  })

  it('moves by a signed authorization, and logs it as FiatToken does', async () => {
    const [sender] = publishedAccounts(1)
    assert.ok(sender !== undefined)
    const wallet = createWalletClient({ account: sender, chain: baseSepolia, transport: http(chain.url) })
    const before = await balanceOf(payer.address)
    const { message, signature } = await authorization(10_000n)
    const { r, s, v } = parseSignature(signature)
    const { from, to, value, validAfter, validBefore, nonce } = message
    const { logs } = await wallet.writeContractSync({
      address: usdcAddress,
      abi,
      functionName: 'transferWithAuthorization',
      args: [from, to, value, validAfter, validBefore, nonce, Number(v), r, s],
    })
    assert.deepEqual(
      parseEventLogs({ abi, logs }).map(({ eventName }) => eventName),
      ['AuthorizationUsed', 'Transfer'],
    )
    assert.equal(await balanceOf(payer.address), before - 10_000n)
    assert.equal(await balanceOf(seller), 10_000n)
  })

  it('is topped up to the amount, not by it', async () => {
    await installTestMoney({ rpcUrl: chain.url, fund: [{ address: payer.address, amount: 2_000_000n }] })
    assert.equal(await balanceOf(payer.address), 2_000_000n)
  })

  it('can be set by the storage slot of the real one', async () => {
    await rpc('anvil_dealERC20', [seller, usdcAddress, '0x7b'])
    assert.equal(await balanceOf(seller), 123n)
  })

  const balanceOf = (account: Hex) =>
    reader.readContract({ address: usdcAddress, abi, functionName: 'balanceOf', args: [account] })
})

async function authorization(value: bigint) {
  const message = {
    from: payer.address,
    to: seller,
    value,
    validAfter: 0n,
    validBefore: BigInt(Math.floor(Date.now() / 1000) + 600),
    nonce: generatePrivateKey(),
  }
  const signature = await payer.signTypedData({ domain, types, primaryType: 'TransferWithAuthorization', message })
  return { message, signature }
}

function readerOf(url: string) {
  return createPublicClient({ transport: http(url) })
}

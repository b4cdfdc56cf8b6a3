/**
 * A gateway for tests. It has anvil with registry and test money, a proxy with faults in front of it for payments and another for asset
 * reads, and as many gateways on one database as a test wants.
 */
import { after, beforeEach } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { encodeEventTopics, encodeFunctionData, parseAbi, toHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts'
import { publishedAddresses } from '../../../src/domain/published-accounts.ts'
import { installTestMoney } from '../../../src/chain/devchain/test-money.ts'
import { createRpcClient } from '../../../src/chain/rpc/client.ts'
import { assetRegistryAbi } from '../../../src/domain/registry-abi.ts'
import type { GatewayOptions } from '../../../src/hosts/gateway/gateway.ts'
import type { EthereumKey } from '../../../src/keys/ethereum.ts'
import { createLog } from '../../../src/lib/log.ts'
import type { Database } from '../../../src/db/database.ts'
import { createBook } from '../../../src/payments/book.ts'
import { openEmptyPglite } from '../database/pglite.ts'
import { keepLog, keepSecret } from '../evidence.ts'
import { asset, domain, keyOf, payTo, price, type SignedPayment } from './buyer.ts'
import { attestationKey, openTables, openTestGateway, openVerdicts, terms } from './components.ts'
import { startFaultRpc } from '../fault-rpc.ts'
import { startRegistryChain } from '../test-chain.ts'
import { until } from '../wait.ts'

export { payTo, price } from './buyer.ts'

const tokenAbi = parseAbi([
  'function balanceOf(address) view returns (uint256)',
  'function pause()',
  'function unpause()',
  'function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)',
  'function cancelAuthorization(address,bytes32,bytes)',
])

const [operator] = publishedAddresses as [Hex]
const [deployer, anyone] = publishedAddresses.slice(7) as [Hex, Hex]
const [mintedTopic] = encodeEventTopics({ abi: assetRegistryAbi, eventName: 'AssetMinted' })

export type GatewayWorld = Awaited<ReturnType<typeof startGatewayWorld>>
type ChannelOptions = NonNullable<GatewayOptions['channels']>
export type Opened = Awaited<ReturnType<GatewayWorld['open']>>

/**
 * A world for all tests of a file, which ends with them. It has one token, a payer of many payments, and the units charged during a test.
 */
export async function openSale(given: { database?: Database } = {}) {
  const world = await startGatewayWorld(given)
  after(() => world.end())
  let held = 0n
  beforeEach(async () => {
    await world.ageSettled()
    held = await world.balance()
  })
  return {
    world,
    token: await world.mint(),
    payer: await world.payer(1_000n * price),
    charged: async () => (await world.balance()) - held,
  }
}

/** Starts a chain and what a gateway needs, with new accounts and keys. Left out: a PGlite of its own. `end` closes all that was opened. */
export async function startGatewayWorld(given: { database?: Database } = {}) {
  const database = given.database ?? (await openEmptyPglite())
  const lines: string[] = []
  const log = createLog((line) => lines.push(line), 'debug')
  const chain = await startRegistryChain()
  const { rpc, contract, automine, mine } = chain
  await installTestMoney({ rpcUrl: chain.url })
  const payFaults = await startFaultRpc({ target: chain.url })
  const readFaults = await startFaultRpc({ target: chain.url })
  const facilitatorSecret = generatePrivateKey()
  const facilitator = privateKeyToAccount(facilitatorSecret)
  const signer = attestationKey()
  for (const secret of [facilitatorSecret, signer.secret]) keepSecret(secret.slice(2))
  await rpc('anvil_setBalance', [facilitator.address, toHex(10n ** 18n)])
  const { verdicts, reader, source } = openVerdicts({ rpcUrl: readFaults.url, contract, log })
  const { holder, ledger: store, slots, channels } = await openTables(database)
  const opened: { close: () => Promise<void> }[] = []

  /** A gateway on a free port. */
  async function open(more: Partial<GatewayOptions> = {}) {
    const parts = { rpcUrl: payFaults.url, contract, verdicts, ledger: store, slots, facilitator, signer, log }
    const deadlines = { missingSeconds: 2, ...more.deadlines }
    const own = await openTestGateway(parts, { reconcileMs: 3_600_000, ...more, deadlines })
    opened.push(own)
    return own
  }

  /** Account 0 holds every role of the registry. */
  async function write(data: Hex) {
    const receipt = await chain.send({ from: operator, to: contract, data })
    reader.dropHead(BigInt(receipt.blockNumber))
    return receipt
  }

  /** Anyone may send a call that holds a signature. */
  function callToken(functionName: string, args: readonly unknown[]) {
    return chain.send({
      from: anyone,
      to: asset,
      data: encodeFunctionData({ abi: tokenAbi, functionName, args } as never),
    })
  }

  return {
    rpc,
    terms,
    contract,
    chainUrl: chain.url,
    /** A client of the chain itself, without faults. */
    provider: createRpcClient({ url: chain.url }),
    payFaults,
    readFaults,
    facilitator,
    facilitatorSecret,
    signer,
    verdicts,
    database,
    store,
    slots,
    channels,
    book: createBook(database, { chainId: 84532, asset }),
    lines,
    open,
    /** The option of a gateway that sells through payment channels. It claims nothing by itself, and `account` authorizes claims. */
    through: (account: EthereumKey, more: Partial<ChannelOptions> = {}) => ({
      channels: { store: channels, accounts: [account], intervalMs: 3_600_000, ...more } satisfies ChannelOptions,
    }),
    /** Notes that the proof of a payment was not delivered. */
    undeliver: (payment: SignedPayment) => store.setUndelivered(keyOf(payment), true),
    /** Mints one token to account 0, under the next id or under one of the test's choice. */
    async mint(chosen?: bigint): Promise<bigint> {
      const zero: Hex = `0x${'0'.repeat(64)}`
      const data =
        chosen === undefined
          ? encodeFunctionData({ abi: assetRegistryAbi, functionName: 'mint', args: [operator, zero] })
          : encodeFunctionData({ abi: assetRegistryAbi, functionName: 'mintWithId', args: [operator, chosen, zero] })
      const { logs } = await write(data)
      const minted = logs.find(({ topics }) => topics[0] === mintedTopic)?.topics[1]
      if (minted === undefined) throw new Error('The registry did not mint.')
      return BigInt(minted)
    },
    /** Binds a token to a tag, so that it can be flagged, and flags it. */
    async flag(tokenId: bigint, flags: number): Promise<void> {
      const tag = toHex(tokenId + 1n, { size: 32 })
      await write(encodeFunctionData({ abi: assetRegistryAbi, functionName: 'bindTag', args: [tokenId, tag] }))
      await write(encodeFunctionData({ abi: assetRegistryAbi, functionName: 'flag', args: [tokenId, flags, tag] }))
    },
    /** A new contract; its address. */
    deploy: async (data: Hex): Promise<Hex> => (await chain.send({ from: deployer, data })).contractAddress,
    /** A new payer with this much money. */
    async payer(amount = 10n * price): Promise<PrivateKeyAccount> {
      const account = privateKeyToAccount(generatePrivateKey())
      if (amount > 0n) await installTestMoney({ rpcUrl: chain.url, fund: [{ address: account.address, amount }] })
      return account
    },
    async balance(address: Hex = payTo): Promise<bigint> {
      const data = encodeFunctionData({ abi: tokenAbi, functionName: 'balanceOf', args: [address] })
      return BigInt((await rpc('eth_call', [{ to: asset, data }, 'latest'])) as Hex)
    },
    /** Anyone may execute an authorization. */
    submit: ({ from, to, value, validAfter, validBefore, nonce, signature }: SignedPayment) =>
      callToken('transferWithAuthorization', [from, to, value, validAfter, validBefore, nonce, signature]),
    async cancel(payer: PrivateKeyAccount, nonce: Hex): Promise<void> {
      const signature = await payer.signTypedData({
        domain,
        types: {
          CancelAuthorization: [
            { name: 'authorizer', type: 'address' },
            { name: 'nonce', type: 'bytes32' },
          ],
        },
        primaryType: 'CancelAuthorization',
        message: { authorizer: payer.address, nonce },
      })
      await callToken('cancelAuthorization', [payer.address, nonce, signature])
    },
    pause: (on: boolean) => callToken(on ? 'pause' : 'unpause', []),
    /** Resolves when the transaction of a payment waits in the node. An answer 503 may come before it is sent. */
    sent: (payment: SignedPayment) =>
      until(async () => {
        const { transaction = null } = (await store.find(keyOf(payment))) ?? {}
        return transaction !== null && (await rpc('eth_getTransactionByHash', [transaction])) !== null
      }),
    /** How many transactions of the facilitator were mined. */
    transactions: async () => Number(await rpc('eth_getTransactionCount', [facilitator.address, 'latest'])),
    automine,
    mine,
    /** Mines what waits, and from then on each transaction by itself. */
    async mineAgain(): Promise<void> {
      await automine(true)
      await mine()
    },
    async heal(): Promise<void> {
      payFaults.set('none')
      readFaults.set('none')
      await automine(true)
    },
    /** Makes settled payments so old that a new gateway does not check their blocks again. Each costs several calls. */
    async ageSettled(): Promise<void> {
      await database.query(`update payment set settled_at = settled_at - interval '1 hour' where state = 'done'`)
      await database.query(`update settlement set mined_at = mined_at - interval '1 hour' where state = 'mined'`)
    },
    async end(): Promise<void> {
      keepLog(lines)
      for (const gateway of opened) await gateway.close()
      reader.close()
      await source.close()
      await payFaults.close()
      await readFaults.close()
      await chain.close()
      await holder[Symbol.asyncDispose]()
      if (given.database === undefined) await database.close()
    },
  }
}

/**
 * A gateway for tests: anvil with registry and test money, a proxy with faults in front of it for payments and another for asset reads,
 * and as many gateways on one database as a test wants.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Hex } from '@touchstone/verdict'
import { encodeEventTopics, encodeFunctionData, parseAbi, toHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts'
import { publishedAddresses } from '../src/chain/local-chain-accounts.ts'
import { startLocalChain } from '../src/chain/local-chain.ts'
import { deployLocal } from '../src/chain/local-deployment.ts'
import { installTestMoney } from '../src/chain/local-money.ts'
import { createWriterRpc } from '../src/chain/writer-rpc.ts'
import { assetRegistryAbi } from '../src/chain/abi.ts'
import { openGateway, type GatewayOptions } from '../src/gateway/gateway.ts'
import { clientKeys } from '../src/http/client-key.ts'
import { createLog } from '../src/log.ts'
import type { Database } from '../src/store/database.ts'
import { migrate } from '../src/store/migrate.ts'
import { paymentStore } from '../src/store/payments.ts'
import { keepLog, keepSecret } from './_evidence.ts'
import { asset, domain, payTo, price, type SignedPayment } from './_gateway-buyer.ts'
import { attestationKey, openVerdicts, published } from './_gateway-parts.ts'
import { startFaultRpc } from './_fault-rpc.ts'

export { payTo, price } from './_gateway-buyer.ts'

const tokenAbi = parseAbi([
  'function balanceOf(address) view returns (uint256)',
  'function pause()',
  'function unpause()',
  'function transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)',
  'function cancelAuthorization(address,bytes32,bytes)',
])

const [mintedTopic] = encodeEventTopics({ abi: assetRegistryAbi, eventName: 'AssetMinted' })

export type GatewayWorld = Awaited<ReturnType<typeof startGatewayWorld>>
type Receipt = { blockNumber: Hex; contractAddress: Hex; logs: { topics: Hex[] }[] }
export type Opened = Awaited<ReturnType<GatewayWorld['open']>>

/** Accounts and keys are new in each world. */
export async function startGatewayWorld({ database }: { database: Database }) {
  const dataDir = await mkdtemp(join(tmpdir(), 'touchstone-gateway-'))
  const lines: string[] = []
  const log = createLog((line) => lines.push(line), 'debug')
  const chain = await startLocalChain({ dataDir, log: createLog(() => {}) })
  const { contract } = await deployLocal({ rpcUrl: chain.url })
  await installTestMoney({ rpcUrl: chain.url })
  await migrate(database)
  const rpc = createWriterRpc({ url: chain.url, timeoutMs: 10_000 })
  const payFaults = await startFaultRpc({ target: chain.url })
  const readFaults = await startFaultRpc({ target: chain.url })
  const facilitatorSecret = generatePrivateKey()
  const facilitator = privateKeyToAccount(facilitatorSecret)
  const signer = attestationKey()
  for (const secret of [facilitatorSecret, signer.secret]) keepSecret(secret.slice(2))
  await rpc('anvil_setBalance', [facilitator.address, toHex(10n ** 18n)])
  const { verdicts, reader, source } = openVerdicts({ rpcUrl: readFaults.url, contract, log })
  const store = paymentStore(database, { chainId: 84532, asset })
  const servers: Server[] = []
  const terms = { price, asset, payTo, resource: '', tokenName: 'USDC', tokenVersion: '2' }

  /** A gateway on a free port. */
  async function open(more: Partial<GatewayOptions> = {}) {
    let onRequest: RequestListener = () => {}
    const server = createServer({ maxHeaderSize: 16_384 }, (request, response) => onRequest(request, response))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    servers.push(server)
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const gateway = await openGateway({
      terms: { ...terms, resource: `${url}/verify` },
      contract,
      verdicts,
      ledger: store,
      rpc: createWriterRpc({ url: payFaults.url }),
      facilitator: { account: facilitator },
      keys: { active: () => signer, published: () => [published(signer)] },
      clientKey: clientKeys([]),
      log,
      reconcileMs: 3_600_000,
      ...more,
    })
    onRequest = gateway.onRequest
    return {
      ...gateway,
      url,
      async close() {
        await gateway[Symbol.asyncDispose]()
        server.closeAllConnections()
        server.close()
      },
    }
  }

  async function send(from: Hex, to: Hex | undefined, data: Hex): Promise<Receipt> {
    const hash = await rpc('eth_sendTransaction', [{ from, to, data, gas: toHex(3_000_000) }])
    for (let tries = 0; tries < 500; tries += 1) {
      const receipt = (await rpc('eth_getTransactionReceipt', [hash])) as Receipt | null
      if (receipt !== null) return receipt
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    throw new Error('The chain did not mine.')
  }

  return {
    rpc,
    terms,
    contract,
    chainUrl: chain.url,
    payFaults,
    readFaults,
    facilitator,
    facilitatorSecret,
    signer,
    verdicts,
    store,
    lines,
    open,
    /** Mints one token to account 0, under the next id or under one of the test's choice. */
    async mint(chosen?: bigint): Promise<bigint> {
      const [operator] = publishedAddresses as [Hex]
      const zero: Hex = `0x${'0'.repeat(64)}`
      const data =
        chosen === undefined
          ? encodeFunctionData({ abi: assetRegistryAbi, functionName: 'mint', args: [operator, zero] })
          : encodeFunctionData({ abi: assetRegistryAbi, functionName: 'mintWithId', args: [operator, chosen, zero] })
      const receipt = await send(operator, contract, data)
      const minted = receipt.logs.find(({ topics }) => topics[0] === mintedTopic)?.topics[1]
      if (minted === undefined) throw new Error('The registry did not mint.')
      reader.dropHead(BigInt(receipt.blockNumber))
      return BigInt(minted)
    },
    /** A new contract; its address. */
    deploy: async (data: Hex): Promise<Hex> =>
      (await send(publishedAddresses[7] as Hex, undefined, data)).contractAddress,
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
      send(
        publishedAddresses[8] as Hex,
        asset,
        encodeFunctionData({
          abi: tokenAbi,
          functionName: 'transferWithAuthorization',
          args: [from, to, value, validAfter, validBefore, nonce, signature],
        }),
      ),
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
      const args = [payer.address, nonce, signature] as const
      await send(
        publishedAddresses[8] as Hex,
        asset,
        encodeFunctionData({ abi: tokenAbi, functionName: 'cancelAuthorization', args }),
      )
    },
    pause: (on: boolean) =>
      send(
        publishedAddresses[8] as Hex,
        asset,
        encodeFunctionData({ abi: tokenAbi, functionName: on ? 'pause' : 'unpause' }),
      ),
    automine: (on: boolean) => rpc('evm_setAutomine', [on]),
    mine: (blocks = 1) => rpc('anvil_mine', [toHex(blocks)]),
    async heal(): Promise<void> {
      payFaults.set('none')
      readFaults.set('none')
      await rpc('evm_setAutomine', [true])
    },
    async end(): Promise<void> {
      keepLog(lines)
      for (const server of servers) {
        server.closeAllConnections()
        server.close()
      }
      reader.close()
      await source.close()
      await payFaults.close()
      await readFaults.close()
      await chain.close()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

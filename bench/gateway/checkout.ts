/** The sale of the gateway in this process (spec §4.8), joined of the service's parts as `openGateway` joins them, each part timed. */
import { randomBytes } from 'node:crypto'
import { toHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { createVerdicts, type Verdicts } from '../../service/src/assets/verdicts.ts'
import { createAssetReader } from '../../service/src/chain/assets/reader.ts'
import { usdcAddress } from '../../service/src/chain/devchain/test-money.ts'
import { createChainSource } from '../../service/src/chain/rpc/source.ts'
import { readConfig } from '../../service/src/app/config/config.ts'
import { createAttest, type AttestationKey } from '../../service/src/payments/attestation/attest.ts'
import { localKey } from '../../service/src/payments/attestation/key.ts'
import { createBroadcast } from '../../service/src/payments/facilitator/broadcast.ts'
import { createLocalFacilitator } from '../../service/src/payments/facilitator/local.ts'
import type { Facilitator } from '../../service/src/payments/facilitator/facilitator.ts'
import type { GatewayOptions } from '../../service/src/hosts/gateway/gateway.ts'
import { type Ledger, createLedger } from '../../service/src/payments/ledger.ts'
import { createPaymentChain } from '../../service/src/payments/on-chain.ts'
import { decodePayment } from '../../service/src/payments/x402/payment.ts'
import { parseOrder } from '../../service/src/payments/order.ts'
import type { RpcClient } from '../../service/src/chain/rpc/client.ts'
import { createCheckout } from '../../service/src/payments/checkout.ts'
import { createSettlement } from '../../service/src/payments/settlement.ts'
import type { Terms } from '../../service/src/payments/x402/terms.ts'
import { chainId } from '../../service/src/domain/chain.ts'
import type { Times } from './times.ts'
import { price, seller, type GatewayWorld } from './world.ts'
import { silent } from '../lib/world.ts'

const terms: Terms = {
  price,
  asset: usdcAddress,
  payTo: seller,
  resource: 'http://127.0.0.1/verify',
  tokenName: 'USDC',
  tokenVersion: '2',
}
const answerMs = 28_000

/** Requests to the chain's provider and statements to the database since the start. */
type Calls = { chain: number; database: number }

export type TimedSale = {
  /** A request as its body and its `PAYMENT-SIGNATURE` header; the body of the answer. It throws for anything but a proof. */
  readonly sell: (request: { readonly body: string; readonly header: string }) => Promise<string>
  readonly calls: () => Readonly<Calls>
}

/** Resources that it opens are on `made`. */
export async function openTimedSale(
  made: AsyncDisposableStack,
  world: GatewayWorld,
  { add, timed }: Times,
): Promise<TimedSale> {
  const calls: Calls = { chain: 0, database: 0 }
  const begun = new Map<string, number>()

  const rpc: RpcClient = (method, params) => {
    calls.chain += 1
    return world.rpc(method, params)
  }
  const store: GatewayOptions['ledger'] = createLedger(countedDatabase(world, calls), { chainId, asset: usdcAddress })
  const find = timed('ledger: look', (...given: Parameters<Ledger['find']>) => store.find(...given))
  const ledger: Ledger = {
    ...store,
    find(key) {
      add('decode and match', performance.now() - (begun.get(key.nonce) ?? Number.NaN))
      return find(key)
    },
    claim: timed('ledger: claim', (...given: Parameters<Ledger['claim']>) => store.claim(...given)),
    settling: timed('durable store', (...given: Parameters<Ledger['settling']>) => store.settling(...given)),
    done: timed('ledger: done', (...given: Parameters<Ledger['done']>) => store.done(...given)),
  }
  const untimed = createPaymentChain({ rpc, asset: usdcAddress })
  const chain = { ...untimed, transferStatus: timed('ask the chain', untimed.transferStatus) }
  const account = privateKeyToAccount(generatePrivateKey())
  await world.rpc('anvil_setBalance', [account.address, toHex(10n ** 20n)])
  const broadcast = timed('of it: broadcast', createBroadcast({ rpc, account, lock: store.locked }))
  const exact = createLocalFacilitator({ rpc, chain, account, broadcast, terms })
  const facilitator: Facilitator = {
    ...exact,
    verify: timed('facilitator: verify', exact.verify),
    settle: timed('facilitator: settle', exact.settle),
  }
  const verdicts = openVerdicts(made, world)
  const attest = createAttest({
    verdicts: { answer: timed('asset read', verdicts.answer) },
    key: timedKey(add),
  })
  const shared = { ledger, chain, facilitator, terms, count: () => {}, log: silent }
  const checkout = createCheckout({ ...shared, attest, settlement: createSettlement(shared) })

  return {
    async sell({ body, header }) {
      const began = performance.now()
      const presented = decodePayment(undefined, header)
      const parsed = parseOrder(body)
      if (presented.kind !== 'payment' || parsed.kind !== 'order') throw new Error('The request is not read.')
      begun.set(presented.payment.nonce, began)
      const request = { presented, order: parsed.order, until: began + answerMs, isAborted: () => false }
      const outcome = await checkout.buy(request)
      add('whole', performance.now() - began)
      if (outcome.kind === 'error') throw new Error(`A payment was answered with ${outcome.error}.`)
      return outcome.body
    },
    calls: () => ({ ...calls }),
  }
}

/** A transaction, here one around the broadcast, has its begin and commit besides. */
function countedDatabase({ database }: GatewayWorld, calls: Calls): Parameters<typeof createLedger>[0] {
  const counted = <Sql extends Pick<GatewayWorld['database'], 'query'>>(sql: Sql): Sql => ({
    ...sql,
    query: (text, values) => {
      calls.database += 1
      return sql.query(text, values)
    },
  })
  return {
    ...counted(database),
    transaction: (run) => {
      calls.database += 2
      return database.transaction((sql) => run(counted(sql)))
    },
  }
}

/** Asked for once for each proof, which it signs twice. */
function timedKey(add: Times['add']): () => AttestationKey {
  const key = localKey(randomBytes(32))
  if (key === null) throw new Error('No private key of secp256k1.')
  return () => {
    const began = performance.now()
    let open = 2
    const signed = <Given>(sign: (given: Given) => Promise<`0x${string}`>) => {
      return async (given: Given) => {
        const signature = await sign(given)
        open -= 1
        if (open === 0) add('sign', performance.now() - began)
        return signature
      }
    }
    return { ...key, sign: signed(key.sign), signTypedData: signed(key.signTypedData) }
  }
}

/** As `parts.ts` makes them for a registry of our own. */
function openVerdicts(made: AsyncDisposableStack, { rpcUrl, contract }: GatewayWorld): Verdicts {
  const { chain } = readConfig({
    CHAIN_RPC_URLS: rpcUrl,
    CHAIN_CONTRACT: contract,
    CHAIN_MAX_HEAD_AGE_SECONDS: '0',
  })
  const source = createChainSource({ ...chain, contract, chainId, log: silent })
  made.defer(() => source.close())
  const assets = createAssetReader({ ...chain, source, contract, log: silent })
  made.defer(() => assets.close())
  const metadata = { get: async () => undefined }
  return createVerdicts({ assets, metadata, contract, chainId, maxEntries: chain.cacheEntries, log: silent })
}

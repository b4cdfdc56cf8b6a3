/**
 * The facilitator in this process: the exact scheme of `@x402/evm` over a signer of its own, made anew for each call. The signer records
 * faults beneath the library, which reports an unreachable provider as a bad signature and a rejecting token as a missing contract.
 */
import type { Hex } from '@touchstone/verdict'
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import { encodeFunctionData, type Abi, type LocalAccount } from 'viem'
import { isRevert, type RpcClient } from '../../chain/rpc/client.ts'
import { sleep } from '../../lib/async/sleep.ts'
import { onPendingBlock, readContract, type PaymentChain } from '../on-chain.ts'
import type { Terms } from '../x402/terms.ts'
import { BroadcastError, type Broadcast } from './broadcast.ts'
import { facilitatorInput, toBuyerError, type Facilitator, type Report, type SettleOptions } from './facilitator.ts'

type LocalOptions = {
  readonly rpc: RpcClient
  readonly chain: Pick<PaymentChain, 'rejectionReason' | 'isRightChain'>
  readonly account: LocalAccount
  readonly broadcast: Broadcast
  readonly terms: Terms
  /** Longest wait for a receipt, in milliseconds. */
  readonly receiptMs?: number | undefined
}

export function createLocalFacilitator(options: LocalOptions): Facilitator {
  const { chain, terms } = options
  return {
    async verify(payment) {
      const { scheme, state } = createAttempt(options)
      const { payload, requirements } = facilitatorInput(payment, terms)
      const { isValid, invalidReason } = await scheme.verify(payload, requirements)
      if (isValid) return { ok: true }
      const error = await toBuyerError(invalidReason ?? '', chain, state.fault)
      // The library finds the reason of a failed simulation only where Multicall3 has `tryAggregate`.
      const reason = error === 'payment_rejected' ? await chain.rejectionReason(payment) : undefined
      return { ok: false, error: reason ?? error }
    },
    async settle(payment, settling) {
      const { scheme, state } = createAttempt(options, settling)
      const { payload, requirements } = facilitatorInput(payment, terms)
      const { success } = await scheme.settle(payload, requirements)
      return success ? { sent: 'mined' } : state.report
    },
    supports: async () => true,
  }
}

type State = { fault: unknown; report: Report }

/** Makes the library's scheme for one call, with the state beneath it. */
function createAttempt(
  { rpc: provider, account, broadcast, receiptMs = 12_000 }: LocalOptions,
  settling?: SettleOptions,
) {
  const state: State = { fault: undefined, report: { sent: settling?.known === undefined ? 'no' : 'perhaps' } }
  const pending = onPendingBlock(provider)
  const rpc: RpcClient = async (method, params) => {
    try {
      return await pending(method, params)
    } catch (error) {
      if (!isRevert(error)) state.fault ??= error
      throw error
    }
  }
  const codes = new Map<string, Promise<Hex>>() // the library reads each twice in one check
  const scheme = new ExactEvmScheme(
    {
      getAddresses: () => [account.address],
      readContract: ({ address, ...call }) =>
        readContract(rpc, { to: address, ...call, abi: call.abi as Abi, at: 'latest' }),
      getCode: ({ address }) => {
        const code = codes.get(address) ?? (rpc('eth_getCode', [address, 'latest']) as Promise<Hex>)
        codes.set(address, code)
        return code
      },
      verifyTypedData: () => Promise.reject(new Error('the library checks signatures itself')),
      sendTransaction: () => Promise.reject(new Error('no wallet is deployed for a buyer')),
      async writeContract({ address, abi, functionName, args, dataSuffix = '0x' }) {
        const data = encodeFunctionData({ abi: abi as Abi, functionName, args })
        try {
          const hash = await broadcast({ to: address, data: `${data}${dataSuffix.slice(2)}` }, async (signed) => {
            state.report = { sent: 'perhaps' }
            await settling?.onSent(signed)
          })
          state.report = { sent: 'perhaps' }
          return hash
        } catch (error) {
          state.report = error instanceof BroadcastError ? error.report : { sent: 'perhaps' }
          throw error
        }
      },
      async waitForTransactionReceipt({ hash }) {
        const receipt = await waitForReceipt(rpc, hash, receiptMs)
        const status = receipt.status === '0x1' ? 'success' : 'reverted'
        state.report = { sent: status === 'success' ? 'mined' : 'reverted' }
        return { status, logs: receipt.logs }
      },
    },
    { pendingSettlementStore: pendingStore(rpc, settling) },
  )
  return { scheme, state }
}

type Receipt = { readonly status: Hex; readonly logs: readonly never[] }

async function waitForReceipt(rpc: RpcClient, hash: Hex, receiptMs: number): Promise<Receipt> {
  const until = performance.now() + receiptMs
  for (let wait = 50; ; wait = Math.min(500, wait * 1.5)) {
    const receipt = (await rpc('eth_getTransactionReceipt', [hash]).catch(() => null)) as Receipt | null
    if (receipt !== null) return receipt
    if (performance.now() + wait > until) throw new Error('no receipt in time')
    await sleep(wait)
  }
}

/** The ledger row replaces the library's memory of pending transactions. A transaction that the node has lost is sent again. */
function pendingStore(rpc: RpcClient, settling: SettleOptions | undefined) {
  return {
    async get(): Promise<Hex | undefined> {
      if (settling?.known === undefined) return undefined
      return (await rpc('eth_getTransactionByHash', [settling.known])) === null ? undefined : settling.known
    },
    set: async (): Promise<void> => {}, // written when the transaction was signed
    delete: async (): Promise<void> => {}, // the chain decides when the payment is settled
  }
}

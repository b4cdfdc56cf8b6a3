/**
 * The facilitator in this process: the exact scheme of `@x402/evm` over a signer of ours, made anew for each call, so that what failed
 * underneath is known: the library takes a dead provider for a bad signature and a refusing token for a missing contract.
 */
import type { Hex } from '@touchstone/verdict'
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import { encodeFunctionData, type Abi, type LocalAccount } from 'viem'
import { GatewayFault } from './answers.ts'
import { BroadcastError, type Broadcast } from './broadcast-queue.ts'
import { facilitatorInput, reasons, type Facilitator, type Report, type SettleOptions } from './facilitator.ts'
import type { PaymentChain } from './payment-chain.ts'
import { asOfNow, isRevert, readContract, type PaymentRpc } from './rpc.ts'
import type { Terms } from './terms.ts'

/** How long a receipt is waited for, in milliseconds. */
const receiptMs = 12_000

export function createLocalFacilitator({
  rpc,
  chain,
  account,
  broadcast,
  terms,
}: {
  readonly rpc: PaymentRpc
  readonly chain: Pick<PaymentChain, 'whyRefused' | 'isRightChain'>
  readonly account: LocalAccount
  readonly broadcast: Broadcast
  readonly terms: Terms
}): Facilitator {
  const now = asOfNow(rpc)
  const attemptOf = (options?: SettleOptions) => createAttempt({ rpc: now, account, broadcast, options })

  return {
    async verify(payment) {
      const attempt = attemptOf()
      const { payload, requirements } = facilitatorInput(payment, terms)
      const { isValid, invalidReason } = await attempt.scheme.verify(payload, requirements)
      if (isValid) return { ok: true }
      const error = reasons[invalidReason ?? '']
      if (attempt.state.failed !== undefined || error === undefined || !(await chain.isRightChain()))
        throw new GatewayFault('payment_unavailable', { cause: attempt.state.failed ?? invalidReason })
      // Without `tryAggregate` of Multicall3 the library cannot tell why a simulation failed.
      return { ok: false, error: error === 'payment_rejected' ? ((await chain.whyRefused(payment)) ?? error) : error }
    },
    async settle(payment, options) {
      const { scheme, state } = attemptOf(options)
      const { payload, requirements } = facilitatorInput(payment, terms)
      const { success } = await scheme.settle(payload, requirements)
      return success ? { sent: 'mined' } : state.report
    },
    supports: async () => true,
  }
}

type State = { failed: unknown; report: Report }

/** One call of the library, and what happened beneath it. */
function createAttempt({
  rpc: provider,
  account,
  broadcast,
  options,
}: {
  readonly rpc: PaymentRpc
  readonly account: LocalAccount
  readonly broadcast: Broadcast
  readonly options: SettleOptions | undefined
}) {
  const state: State = { failed: undefined, report: { sent: options?.known === undefined ? 'no' : 'perhaps' } }
  const rpc: PaymentRpc = async (method, params) => {
    try {
      return await provider(method, params)
    } catch (error) {
      if (!isRevert(error)) state.failed ??= error
      throw error
    }
  }
  const codes = new Map<string, Promise<Hex>>() // asked for twice in one check
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
            await options?.onSent(signed)
          })
          state.report = { sent: 'perhaps' }
          return hash
        } catch (error) {
          state.report = reportOf(error)
          throw error
        }
      },
      async waitForTransactionReceipt({ hash }) {
        const receipt = await receiptOf(rpc, hash)
        const status = receipt.status === '0x1' ? 'success' : 'reverted'
        state.report = { sent: status === 'success' ? 'mined' : 'reverted' }
        return { status, logs: receipt.logs }
      },
    },
    { pendingSettlementStore: storeOf(rpc, options) },
  )
  return { scheme, state }
}

function reportOf(error: unknown): Report {
  const reason = error instanceof BroadcastError ? error.reason : 'unknown'
  if (reason === 'unknown') return { sent: 'perhaps' }
  const refusal = ({ too_costly: 'payment_rejected', no_gas: 'payment_unavailable' } as const)[reason as 'no_gas']
  return { sent: 'no', refusal }
}

type Receipt = { readonly status: Hex; readonly logs: readonly never[] }

async function receiptOf(rpc: PaymentRpc, hash: Hex): Promise<Receipt> {
  const until = performance.now() + receiptMs
  for (let wait = 50; ; wait = Math.min(500, wait * 1.5)) {
    const receipt = (await rpc('eth_getTransactionReceipt', [hash]).catch(() => null)) as Receipt | null
    if (receipt !== null) return receipt
    if (performance.now() + wait > until) throw new Error('no receipt in time')
    await new Promise((resolve) => setTimeout(resolve, wait))
  }
}

/** The library's memory of transactions under way is the row of the ledger; one that the node has lost is sent again. */
function storeOf(rpc: PaymentRpc, options: SettleOptions | undefined) {
  return {
    async get(): Promise<Hex | undefined> {
      if (options?.known === undefined) return undefined
      return (await rpc('eth_getTransactionByHash', [options.known])) === null ? undefined : options.known
    },
    set: async (): Promise<void> => {}, // written when the transaction was signed
    delete: async (): Promise<void> => {}, // the chain decides when the payment is settled
  }
}

/** Opens the payment-gated gateway: its host and the jobs beside it. */
import type { RequestListener } from 'node:http'
import { checksumAddress, type Hex, type PublishedKey } from '@touchstone/verdict'
import type { LocalAccount } from 'viem'
import type { Verdicts } from '../asset/verdicts.ts'
import type { ClientKey } from '../http/client-key.ts'
import type { RateLimiter } from '../http/rate-limit.ts'
import { reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import { createAttest, type AttestationKey } from './attest.ts'
import { createBroadcast, type KeyLock } from './broadcast-queue.ts'
import { attestationDocument } from './discovery.ts'
import { createLocalFacilitator } from './facilitator-local.ts'
import { createRemoteFacilitator, type FacilitatorHeaders } from './facilitator-remote.ts'
import type { Facilitator } from './facilitator.ts'
import { createGatewayHost } from './host.ts'
import type { Ledger } from './ledger.ts'
import { createCounters, type Counters } from './metrics.ts'
import { createPaymentChain, type PaymentChain } from './payment-chain.ts'
import { createReconciler } from './reconcile.ts'
import type { PaymentRpc } from './rpc.ts'
import { createSales } from './sale.ts'
import { createSelfCheck } from './self-check.ts'
import { createSettlement } from './settlement.ts'
import type { Terms } from './terms.ts'

export type GatewayOptions = {
  readonly terms: Terms
  /** A price above 0.10 USDC needs this. */
  readonly allowHighPrice?: boolean
  readonly offerHeader?: boolean
  /** The core contract, for the self-check and the domain of the typed signature. */
  readonly contract: Hex
  readonly verdicts: Pick<Verdicts, 'answer'>
  readonly ledger: Ledger & { readonly locked: KeyLock }
  readonly rpc: PaymentRpc
  /** `account` pays the gas of settlements and does nothing else; `url` is a facilitator of somebody else. */
  readonly facilitator:
    | { readonly account: LocalAccount }
    | { readonly url: string; readonly headersFor?: FacilitatorHeaders }
  readonly keys: { readonly active: () => AttestationKey; readonly published: () => readonly PublishedKey[] }
  readonly limiter?: RateLimiter | undefined
  readonly clientKey: ClientKey
  readonly log: Log
  /** Milliseconds; for tests. */
  readonly now?: () => number
  readonly reconcileMs?: number
}

export type Gateway = AsyncDisposable & {
  readonly onRequest: RequestListener
  /** Looks after unfinished payments now, instead of within five seconds. */
  readonly reconcile: () => Promise<void>
  readonly check: () => Promise<void>
  readonly metrics: Counters['read']
}

/** Runs the first self-check and the first pass over unfinished payments before it resolves; neither has to succeed. */
export async function openGateway(given: GatewayOptions): Promise<Gateway> {
  const { asset, payTo } = given.terms
  const options = { ...given, terms: { ...given.terms, asset: checksumAddress(asset), payTo: checksumAddress(payTo) } }
  const { terms, contract, verdicts, ledger, rpc, keys, log, now } = options
  await using opened = new AsyncDisposableStack()
  const { count, read } = createCounters()
  const chain = createPaymentChain({ rpc, asset: terms.asset })
  const facilitator = facilitatorOf(options, chain)
  const key = keys.active
  const settlement = createSettlement({ ledger, chain, facilitator, terms, count, log })
  const attest = createAttest({ verdicts, key, ...(now && { now }) })
  const sales = createSales({
    ledger,
    chain,
    facilitator,
    attest,
    settlement,
    terms,
    count,
    log,
    ...(now && { now }),
  })
  opened.defer(() => sales.idle())
  const { isUnderway } = sales
  const reconciler = opened.use(
    createReconciler({
      ledger,
      chain,
      facilitator,
      settlement,
      isUnderway,
      count,
      log,
      ...(options.reconcileMs !== undefined && { intervalMs: options.reconcileMs }),
    }),
  )
  const facilitatorAddress = 'account' in options.facilitator ? options.facilitator.account.address : null
  const selfCheck = opened.use(
    createSelfCheck({
      rpc,
      terms,
      contract,
      key,
      facilitator,
      facilitatorAddress,
      ledger,
      log,
      allowHighPrice: options.allowHighPrice ?? false,
    }),
  )
  await selfCheck.run()
  const onRequest = createGatewayHost({
    ...options,
    sales,
    selfCheck,
    key,
    count,
    attestationDocument: () => attestationDocument(contract, keys.published()),
  })
  reconciler.pass().catch((error: unknown) => log.warn('payments are not looked after', { reason: reasonOf(error) }))
  const rest = opened.move()
  return {
    onRequest,
    reconcile: reconciler.pass,
    check: selfCheck.run,
    metrics: read,
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  }
}

function facilitatorOf({ facilitator, rpc, terms, ledger }: GatewayOptions, chain: PaymentChain): Facilitator {
  if ('url' in facilitator) return createRemoteFacilitator({ ...facilitator, terms, chain })
  const { account } = facilitator
  return createLocalFacilitator({
    rpc,
    chain,
    account,
    terms,
    broadcast: createBroadcast({ rpc, account, lock: ledger.locked }),
  })
}

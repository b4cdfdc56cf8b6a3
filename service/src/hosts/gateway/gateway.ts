/** Opens the payment-gated gateway: its host, and the jobs beside it. */
import type { RequestListener } from 'node:http'
import { checksumAddress, type Hex, type PublishedKey } from '@touchstone/verdict'
import type { LocalAccount } from 'viem'
import type { Verdicts } from '../../assets/verdicts.ts'
import type { ClientKey } from '../../http/client-ip.ts'
import type { RateLimiter } from '../../http/rate-limit/limiter.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import { attestationDocument, createAttest, type AttestationKey } from '../../payments/attestation/attest.ts'
import { createCheckout } from '../../payments/checkout.ts'
import { createBroadcast } from '../../payments/facilitator/broadcast.ts'
import type { Facilitator } from '../../payments/facilitator/facilitator.ts'
import { createLocalFacilitator } from '../../payments/facilitator/local.ts'
import { createRemoteFacilitator, type FacilitatorHeaders } from '../../payments/facilitator/remote.ts'
import type { Ledger } from '../../payments/ledger.ts'
import { createCounters, type Counters } from '../../payments/metrics.ts'
import { createPaymentChain, type PaymentChain } from '../../payments/on-chain.ts'
import { createReconciler } from '../../payments/reconcile.ts'
import { createSelfCheck, type SelfCheckOptions } from '../../payments/self-check.ts'
import { createSettlement } from '../../payments/settlement.ts'
import type { Terms } from '../../payments/x402/terms.ts'
import { createGatewayHost } from './host.ts'

export type GatewayOptions = {
  readonly terms: Terms
  /** Allows a price above 0.10 USDC. */
  readonly allowHighPrice?: boolean
  /** Sends the 402 header of x402 version 2. Default: true. */
  readonly v2Header?: boolean
  /** The core contract, for the self-check and the domain of the typed signature. */
  readonly contract: Hex
  readonly verdicts: Pick<Verdicts, 'answer'>
  readonly ledger: Ledger
  readonly rpc: SelfCheckOptions['rpc']
  /** `account` pays the gas of settlements and does nothing else; `url` is a facilitator of another operator. */
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
  /** Reconciles unfinished payments now, instead of within five seconds. */
  readonly reconcile: () => Promise<void>
  readonly check: () => Promise<void>
  readonly metrics: Counters['read']
}

/** Runs the first self-check before it resolves, and starts the first reconciliation. Neither has to succeed. */
export async function openGateway(given: GatewayOptions): Promise<Gateway> {
  const { asset, payTo } = given.terms
  const options = { ...given, terms: { ...given.terms, asset: checksumAddress(asset), payTo: checksumAddress(payTo) } }
  const {
    terms,
    contract,
    verdicts,
    ledger,
    rpc,
    keys,
    log,
    now,
    reconcileMs = 5_000,
    allowHighPrice = false,
  } = options
  await using opened = new AsyncDisposableStack()
  const { count, read } = createCounters()
  const chain = createPaymentChain({ rpc, asset: terms.asset })
  const facilitator = openFacilitator(options, chain)
  const key = keys.active
  const shared = { ledger, chain, facilitator, terms, count, log }
  const settlement = createSettlement(shared)
  const checkout = createCheckout({ ...shared, settlement, attest: createAttest({ verdicts, key, now }), now })
  opened.defer(() => checkout.idle())
  const { isUnderway } = checkout
  const reconciler = opened.use(createReconciler({ ...shared, settlement, isUnderway, intervalMs: reconcileMs }))
  const facilitatorAddress = 'account' in options.facilitator ? options.facilitator.account.address : null
  const selfCheck = opened.use(createSelfCheck({ ...shared, rpc, contract, key, facilitatorAddress, allowHighPrice }))
  await selfCheck.run()
  const documentNow = () => attestationDocument(contract, keys.published())
  const onRequest = createGatewayHost({ ...options, checkout, selfCheck, key, count, attestationDocument: documentNow })
  reconciler.pass().catch((error: unknown) => log.warn('payments are not reconciled', { reason: reasonOf(error) }))
  const rest = opened.move()
  return {
    onRequest,
    reconcile: reconciler.pass,
    check: selfCheck.run,
    metrics: read,
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  }
}

function openFacilitator({ facilitator, rpc, terms, ledger }: GatewayOptions, chain: PaymentChain): Facilitator {
  if ('url' in facilitator) return createRemoteFacilitator({ ...facilitator, terms, chain })
  const { account } = facilitator
  const broadcast = createBroadcast({ rpc, account, lock: ledger.locked })
  return createLocalFacilitator({ rpc, chain, account, terms, broadcast })
}

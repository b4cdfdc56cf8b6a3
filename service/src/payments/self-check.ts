/**
 * The gateway's self-check at start and every minute. A wrong answer stops the sale (503 `not_ready`). A missing answer only makes the
 * health `degraded`, because each request finds out for itself: a paid one when it pays, an offer by `canSell`.
 */
import { domainSeparator, type Hex } from '@touchstone/verdict'
import { keccak256, toHex } from 'viem/utils'
import { requireQuantity } from '../chain/rpc/answer.ts'
import { isRevert, type RpcClient } from '../chain/rpc/client.ts'
import { hasCode, NoDataError, readContract } from '../chain/rpc/contract.ts'
import { feeLimit } from '../chain/transactions/transaction.ts'
import { chainId } from '../domain/chain.ts'
import { assetRegistryAbi } from '../domain/registry-abi.ts'
import { withDeadline } from '../lib/async/deadline.ts'
import { reasonOf } from '../lib/errors.ts'
import type { Log } from '../lib/log.ts'
import { signerOf, type AttestationKey } from './attestation/attest.ts'
import { channelContract, depositCollector } from './channels/channel.ts'
import type { Facilitator } from './facilitator/facilitator.ts'
import { clockFault, type Heads } from './heads.ts'
import type { PaymentLedger } from './ledger/ledger.ts'
import { tokenAbi } from './on-chain.ts'
import { highestUsualPrice, tokenDomain, type PaymentTerms } from './x402/terms.ts'

/** wrong: the sale stops. missing: no answer, or a warning for the operator. */
type CheckResult = { readonly state: 'ok' | 'wrong' | 'missing'; readonly message: string }
export type SelfCheck = ReturnType<typeof createSelfCheck>

export type SelfCheckOptions = {
  readonly rpc: RpcClient
  readonly heads: Pick<Heads, 'clockError'>
  readonly terms: PaymentTerms
  readonly contract: Hex
  readonly key: () => AttestationKey
  readonly facilitator: Pick<Facilitator, 'supports'>
  /** The accounts whose ether pays for settlements; none where a remote facilitator pays. */
  readonly facilitatorAddresses: readonly Hex[]
  /** Called with the ether of each of these accounts, in wei, whenever it was read. */
  readonly onBalance?: ((address: Hex, balance: bigint) => void) | undefined
  readonly ledger: Pick<PaymentLedger, 'find'>
  readonly allowHighPrice: boolean
  /** Whether this process has seen the index differ from the chain, or that it cannot be brought up to date. */
  readonly isIndexFaulty?: (() => Promise<boolean>) | undefined
  /** Returns false where the database of the ledger takes no writes, such as a standby. */
  readonly takesWrites?: (() => Promise<boolean>) | undefined
  readonly log: Log
}

/** Options of the checks that depend on the settings and the chain alone, and not on a gateway that runs. */
type SaleOptions = Pick<
  SelfCheckOptions,
  'rpc' | 'heads' | 'terms' | 'contract' | 'facilitator' | 'facilitatorAddresses' | 'onBalance' | 'allowHighPrice'
>

const ok = (message: string): CheckResult => ({ state: 'ok', message })
const wrong = (message: string): CheckResult => ({ state: 'wrong', message })
const missing = (message: string): CheckResult => ({ state: 'missing', message })

const everyMs = 60_000
const checkMs = 8_000
/** An offer relies on a look at what every payment needs that is at most this old. */
const lookMs = 2_000
/** About a hundred settlements at 0.1 gwei. */
const lowGas = 1_000_000_000_000_000n
/** The gas limit of one settlement, at a fee that has room for the base fee to double. */
const settlementGas = 2n * 120_000n

export function createSelfCheck(options: SelfCheckOptions) {
  const { log } = options
  let results: ReadonlyMap<string, CheckResult> = new Map()

  async function run(): Promise<void> {
    const known = Object.entries(checks).filter(isOffered(options))
    const checked = known.map(
      async ([name, check]) => [name, await withDeadline(check(options), checkMs).catch(noAnswer)] as const,
    )
    const next = await Promise.all(checked)
    for (const [name, { state, message }] of next) {
      if (state === (results.get(name)?.state ?? 'ok')) continue
      const level = ({ wrong: 'error', missing: 'warn', ok: 'info' } as const)[state]
      log[level]('gateway check', { check: name, state, message })
    }
    // A wrong check stays wrong until it is right: a missing answer proves nothing.
    results = new Map(
      next.map(([name, found]) => {
        const before = results.get(name)
        return [name, found.state === 'missing' && before?.state === 'wrong' ? before : found]
      }),
    )
  }

  let looked: { readonly at: number; readonly answered: Promise<boolean> } | undefined

  /** Returns whether chain, ledger and facilitator answer and gas is paid for, so that a payment could be taken now. Concurrent callers share one look. */
  function canSell(): Promise<boolean> {
    if (looked === undefined || performance.now() - looked.at > lookMs) {
      const asked = needed.map((check) => withDeadline(check(options), checkMs).catch(noAnswer))
      const answered = Promise.all(asked).then((found) => found.every(({ state }) => state === 'ok'))
      looked = { at: performance.now(), answered }
    }
    return looked.answered
  }

  const noAnswer = (error: unknown): CheckResult => {
    log.debug('gateway check without answer', { reason: reasonOf(error) })
    return missing('No answer.')
  }
  const timer = setInterval(() => void run(), everyMs).unref()
  return {
    run,
    results: () => results,
    canSell,
    /** Returns false from a wrong answer to the next right one. */
    ready: () => results.size > 0 && [...results.values()].every(({ state }) => state !== 'wrong'),
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

/** Makes the checks that need no running gateway, and looks whether the next settlement is paid for. */
export async function examineSale(options: SaleOptions): Promise<readonly (CheckResult & { readonly name: string })[]> {
  const asked = Object.entries({ ...saleChecks, settlement: nextSettlement }).filter(isOffered(options))
  return Promise.all(
    asked.map(async ([name, check]) => {
      const noAnswer = (error: unknown) => missing(`The check «${name}» has no answer: ${reasonOf(error)}.`)
      return { name, ...(await withDeadline(check(options), checkMs).catch(noAnswer)) }
    }),
  )
}

/** Leaves out the check of payment channels where there are none. */
function isOffered({ terms }: Pick<SelfCheckOptions, 'terms'>): (check: readonly [name: string, unknown]) => boolean {
  return ([name]) => name !== 'channels' || terms.channels !== undefined
}

const saleChecks = {
  async price({ terms, allowHighPrice }) {
    if (terms.price <= 0n) return wrong('The price is zero.')
    if (terms.price > highestUsualPrice && !allowHighPrice)
      return wrong(
        'The price is above 100000 units, which common buyers refuse by default; it must be allowed explicitly.',
      )
    return ok(`${terms.price} units of ${terms.tokenName}.`)
  },

  async chain({ rpc }) {
    const found = requireQuantity(await rpc('eth_chainId'))
    return found === BigInt(chainId) ? ok(`Chain ${chainId}.`) : wrong(`The provider serves chain ${found}.`)
  },

  async clock({ heads }) {
    const ahead = await heads.clockError()
    return ahead === 0n ? ok('This clock agrees with the chain.') : wrong(clockFault(ahead))
  },

  async token({ rpc, terms }) {
    if (!(await hasCode(rpc, terms.asset))) return wrong('There is no contract at the payment token’s address.')
    // A contract that lacks one of them is not the token.
    const [name, version, decimals, separator] = await Promise.all(
      (['name', 'version', 'decimals', 'DOMAIN_SEPARATOR'] as const).map((functionName) =>
        readContract(rpc, { to: terms.asset, abi: tokenAbi, functionName, args: [] }).catch(ifAbsent(null)),
      ),
    )
    const right =
      name === terms.tokenName &&
      version === terms.tokenVersion &&
      decimals === 6 &&
      separator === domainSeparator(tokenDomain(terms))
    return right
      ? ok(`${terms.tokenName} ${terms.tokenVersion}.`)
      : wrong('The payment token’s name, version, decimals or domain differ from the offer.')
  },

  async contract({ rpc, contract }) {
    return (await hasCode(rpc, contract))
      ? ok('The core contract is there.')
      : wrong('There is no contract at the core contract’s address.')
  },

  async facilitator({ facilitator }) {
    return (await facilitator.supports())
      ? ok('The facilitator serves exact payments on this chain.')
      : wrong('The facilitator does not serve exact payments on this chain.')
  },

  async gas({ rpc, facilitatorAddresses, onBalance }) {
    if (facilitatorAddresses.length === 0) return ok('The remote facilitator pays for settlements.')
    const balances = await Promise.all(facilitatorAddresses.map((address) => balanceOf(rpc, address)))
    for (const [index, address] of facilitatorAddresses.entries()) onBalance?.(address, balances[index] ?? 0n)
    return balances.some((balance) => balance < lowGas)
      ? missing('An account of the facilitator is short of ether.')
      : ok('Every account of the facilitator has ether.')
  },

  async channels({ rpc }) {
    const found = await Promise.all([channelContract, depositCollector].map((address) => hasCode(rpc, address)))
    return found.includes(false)
      ? missing('The contracts of the payment channels are not on this chain.')
      : ok('Payment channels are offered.')
  },
} satisfies Readonly<Record<string, (options: SaleOptions) => Promise<CheckResult>>>

const checks = {
  ...saleChecks,

  async ledger({ ledger, takesWrites }) {
    await ledger.find({ payer: `0x${'0'.repeat(40)}`, nonce: `0x${'0'.repeat(64)}` })
    return (await takesWrites?.()) === false ? missing('The ledger takes no writes.') : ok('The ledger answers.')
  },

  async index({ isIndexFaulty }) {
    return (await isIndexFaulty?.())
      ? missing('The index cannot be brought up to date, or differs from the chain.')
      : ok('No fault of the index is known here.')
  },

  /** Guard 3 of the attestation key: anything else it signs could be passed off as an attestation, and the reverse. */
  async signer({ rpc, terms, contract, key, facilitatorAddresses }) {
    const address = signerOf(key)
    if (address === null) return missing('There is no attestation key here any more.')
    const others = [terms.payTo, ...facilitatorAddresses, ...(terms.channels?.receiverAuthorizers ?? [])]
    if (others.some((other) => other.toLowerCase() === address.toLowerCase()))
      return wrong('The attestation key is also the recipient, the facilitator, or the key of the payment channels.')
    const [count, holdsCode, balance, holdsRole] = await Promise.all([
      rpc('eth_getTransactionCount', [address, 'latest']).then(requireQuantity),
      hasCode(rpc, address),
      balanceOf(rpc, address),
      holdsAnyRole(rpc, contract, address),
    ])
    if (count > 0n || holdsCode) return wrong('The attestation key has sent transactions or holds code.')
    if (holdsRole) return wrong('The attestation key holds a role of the core contract.')
    const { cannotSign } = key()
    if (cannotSign !== undefined) return missing(cannotSign)
    return balance > 0n ? missing('The attestation key’s account holds ether.') : ok(`${address} signs nothing else.`)
  },
} satisfies Readonly<Record<string, (options: SelfCheckOptions) => Promise<CheckResult>>>

/** The checks that a payment depends on. */
const needed: readonly ((options: SelfCheckOptions) => Promise<CheckResult>)[] = [
  (options) => checks.chain(options),
  (options) => checks.ledger(options),
  (options) => checks.facilitator(options),
  nextSettlement,
]

async function nextSettlement({ rpc, facilitatorAddresses }: SaleOptions): Promise<CheckResult> {
  if (facilitatorAddresses.length === 0) return ok('The remote facilitator pays for settlements.')
  const [gasPrice, ...balances] = await Promise.all([
    rpc('eth_gasPrice').then(requireQuantity),
    ...facilitatorAddresses.map((address) => balanceOf(rpc, address)),
  ])
  if (2n * gasPrice > feeLimit) return missing('The price of gas is above the limit.')
  return balances.some((balance) => balance >= settlementGas * gasPrice)
    ? ok('An account of the facilitator pays for a settlement.')
    : missing('No account of the facilitator can pay for a settlement.')
}

const balanceOf = (rpc: RpcClient, address: Hex) => rpc('eth_getBalance', [address, 'latest']).then(requireQuantity)

const roles: readonly Hex[] = [
  `0x${'0'.repeat(64)}`,
  ...['ISSUER', 'BINDER', 'QA', 'ATTESTER', 'GUARDIAN', 'RECYCLER', 'MINTER'].map((name) =>
    keccak256(toHex(`${name}_ROLE`)),
  ),
]

async function holdsAnyRole(rpc: RpcClient, contract: Hex, address: Hex): Promise<boolean> {
  const held = roles.map((role) =>
    readContract(rpc, { to: contract, abi: assetRegistryAbi, functionName: 'hasRole', args: [role, address] }).catch(
      ifAbsent(false),
    ),
  )
  return (await Promise.all(held)).includes(true)
}

/** A contract without a function reverts or returns no data. A provider that refuses the question has not answered it. */
function ifAbsent<T>(value: T) {
  return (error: unknown): T => {
    if (isRevert(error) || error instanceof NoDataError) return value
    throw error
  }
}

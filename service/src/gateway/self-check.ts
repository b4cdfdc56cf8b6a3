/**
 * What the gateway checks about itself at start and every minute. A wrong answer stops the sale (503 `not_ready`); a missing one only
 * makes the health `degraded`, because each request finds out for itself.
 */
import { checksumAddress, type Hex } from '@touchstone/verdict'
import { domainSeparator, keccak256, parseAbi, toHex, type Abi } from 'viem'
import { reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import type { AttestationKey } from './attest.ts'
import type { Facilitator } from './facilitator.ts'
import type { Ledger } from './ledger.ts'
import { isRefusal, quantityOf, readContract, tokenAbi, type PaymentRpc } from './rpc.ts'
import { chainId, highestUsualPrice, type Terms } from './terms.ts'

/** wrong: the sale stops. missing: no answer, or something to look after. */
type CheckResult = { readonly state: 'ok' | 'wrong' | 'missing'; readonly message: string }
export type SelfCheck = Disposable & {
  readonly run: () => Promise<void>
  readonly results: () => ReadonlyMap<string, CheckResult>
  /** False from a wrong answer to the next right one. */
  readonly ready: () => boolean
}

export type SelfCheckOptions = {
  readonly rpc: PaymentRpc
  readonly terms: Terms
  readonly contract: Hex
  readonly key: () => AttestationKey
  readonly facilitator: Facilitator
  /** Whose ether pays for settlements; null where a remote facilitator pays. */
  readonly facilitatorAddress: Hex | null
  readonly ledger: Pick<Ledger, 'find'>
  readonly allowHighPrice: boolean
  readonly log: Log
  readonly intervalMs?: number
}

const ok = (message: string): CheckResult => ({ state: 'ok', message })
const wrong = (message: string): CheckResult => ({ state: 'wrong', message })
const missing = (message: string): CheckResult => ({ state: 'missing', message })

const checkMs = 8_000
/** About a hundred settlements at 0.1 gwei. */
const lowGas = 1_000_000_000_000_000n

export function createSelfCheck(options: SelfCheckOptions): SelfCheck {
  const { log, intervalMs = 60_000 } = options
  let results: ReadonlyMap<string, CheckResult> = new Map()

  async function run(): Promise<void> {
    const next = new Map(
      await Promise.all(
        Object.entries(checks).map(
          async ([name, check]) => [name, await bounded(check(options)).catch(noAnswer)] as const,
        ),
      ),
    )
    for (const [name, { state, message }] of next) {
      if (state === (results.get(name)?.state ?? 'ok')) continue
      log[state === 'wrong' ? 'error' : state === 'missing' ? 'warn' : 'info']('gateway check', {
        check: name,
        state,
        message,
      })
    }
    // What was wrong stays wrong until it is right: silence is no proof.
    results = new Map(
      [...next].map(([name, found]) => {
        const before = results.get(name)
        return [name, found.state === 'missing' && before?.state === 'wrong' ? before : found]
      }),
    )
  }

  const noAnswer = (error: unknown): CheckResult => {
    log.debug('gateway check without answer', { reason: reasonOf(error) })
    return missing('No answer.')
  }
  const timer = setInterval(() => void run(), intervalMs).unref()
  return {
    run,
    results: () => results,
    ready: () => results.size > 0 && [...results.values()].every(({ state }) => state !== 'wrong'),
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

const checks: Readonly<Record<string, (options: SelfCheckOptions) => Promise<CheckResult>>> = {
  async price({ terms, allowHighPrice }) {
    if (terms.price <= 0n) return wrong('The price is zero.')
    if (terms.price > highestUsualPrice && !allowHighPrice)
      return wrong(
        'The price is above 100000 units, which common buyers refuse by default; it must be allowed explicitly.',
      )
    return ok(`${terms.price} units of ${terms.tokenName}.`)
  },

  async chain({ rpc }) {
    const found = quantityOf(await rpc('eth_chainId'))
    return found === BigInt(chainId) ? ok(`Chain ${chainId}.`) : wrong(`The provider serves chain ${found}.`)
  },

  async token({ rpc, terms }) {
    const read = (functionName: string) => readContract(rpc, { to: terms.asset, abi: tokenAbi as Abi, functionName })
    if ((await rpc('eth_getCode', [terms.asset, 'latest'])) === '0x')
      return wrong('There is no contract at the payment token’s address.')
    const [name, version, decimals, separator] = await Promise.all(
      ['name', 'version', 'decimals', 'DOMAIN_SEPARATOR'].map(read),
    )
    const domain = { name: terms.tokenName, version: terms.tokenVersion, chainId, verifyingContract: terms.asset }
    const right =
      name === terms.tokenName &&
      version === terms.tokenVersion &&
      decimals === 6 &&
      separator === domainSeparator({ domain })
    return right
      ? ok(`${terms.tokenName} ${terms.tokenVersion}.`)
      : wrong('The payment token’s name, version, decimals or domain differ from the offer.')
  },

  async contract({ rpc, contract }) {
    const code = await rpc('eth_getCode', [contract, 'latest'])
    return code === '0x'
      ? wrong('There is no contract at the core contract’s address.')
      : ok('The core contract is there.')
  },

  async facilitator({ facilitator }) {
    return (await facilitator.supports())
      ? ok('The facilitator serves exact payments on this chain.')
      : wrong('The facilitator does not serve exact payments on this chain.')
  },

  async gas({ rpc, facilitatorAddress }) {
    if (facilitatorAddress === null) return ok('The remote facilitator pays for settlements.')
    const balance = quantityOf(await rpc('eth_getBalance', [facilitatorAddress, 'latest']))
    return balance < lowGas
      ? missing('The facilitator’s account is short of ether.')
      : ok('The facilitator’s account has ether.')
  },

  async ledger({ ledger }) {
    await ledger.find({ payer: `0x${'0'.repeat(40)}`, nonce: `0x${'0'.repeat(64)}` })
    return ok('The ledger answers.')
  },

  /** Guard 3 of the attestation key: whatever else it signed could be passed off as an attestation, and the reverse. */
  async signer({ rpc, terms, contract, key, facilitatorAddress }) {
    const { address } = key()
    const others = [terms.payTo, ...(facilitatorAddress === null ? [] : [facilitatorAddress])]
    if (others.some((other) => other.toLowerCase() === address.toLowerCase()))
      return wrong('The attestation key is also the recipient or the facilitator.')
    const [count, code, balance, holdsRole] = await Promise.all([
      rpc('eth_getTransactionCount', [address, 'latest']).then(quantityOf),
      rpc('eth_getCode', [address, 'latest']),
      rpc('eth_getBalance', [address, 'latest']).then(quantityOf),
      holdsAnyRole(rpc, contract, address),
    ])
    if (count > 0n || code !== '0x') return wrong('The attestation key has sent transactions or holds code.')
    if (holdsRole) return wrong('The attestation key holds a role of the core contract.')
    return balance > 0n
      ? missing('The attestation key’s account holds ether.')
      : ok(`${checksumAddress(address)} signs nothing else.`)
  },
}

const roleAbi = parseAbi(['function hasRole(bytes32 role, address account) view returns (bool)']) as Abi
const roles: readonly Hex[] = [
  `0x${'0'.repeat(64)}`,
  ...['ISSUER', 'BINDER', 'QA', 'ATTESTER', 'GUARDIAN', 'RECYCLER', 'MINTER'].map((name) =>
    keccak256(toHex(`${name}_ROLE`)),
  ),
]

/** A contract without roles refuses the question. */
async function holdsAnyRole(rpc: PaymentRpc, contract: Hex, address: Hex): Promise<boolean> {
  const held = roles.map((role) =>
    readContract(rpc, { to: contract, abi: roleAbi, functionName: 'hasRole', args: [role, address] }).catch(
      (error: unknown) => {
        if (isRefusal(error) || (error instanceof Error && error.name === 'AbiDecodingZeroDataError')) return false
        throw error
      },
    ),
  )
  return (await Promise.all(held)).includes(true)
}

async function bounded<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), checkMs)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

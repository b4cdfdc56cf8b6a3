/** The gateway's checks of itself. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { domainSeparator, type Hex } from '@touchstone/verdict'
import { encodeAbiParameters, encodeFunctionData, keccak256, toHex } from 'viem/utils'
import { RpcError } from '../chain/rpc/answer.ts'
import { NoDataError } from '../chain/rpc/contract.ts'
import { singleFlight } from '../lib/async/single-flight.ts'
import { createLog } from '../lib/log.ts'
import { channelContract } from './channels/channel.ts'
import { tokenAbi } from './on-chain.ts'
import { createSelfCheck, examineSale } from './self-check.ts'
import { tokenDomain, type PaymentTerms } from './x402/terms.ts'

const [token, contract, payTo, signer, ...payers] = [1, 2, 3, 4, 5, 6].map((n) => toHex(n, { size: 20 })) as [
  Hex,
  Hex,
  Hex,
  Hex,
  Hex,
  Hex,
]
const ether = 10n ** 18n
const sale: PaymentTerms = { price: 10_000n, asset: token, payTo, resource: '', tokenName: 'USDC', tokenVersion: '2' }

type Options = Parameters<typeof createSelfCheck>[0]
/** The chain as the checks see it. */
type Chain = Partial<{
  chainId: Hex
  gasPrice: bigint
  name: string
  version: string
  decimals: bigint
  separator: Hex
  missing: Hex
  balances: Partial<Record<Hex, bigint>>
  fails: string
  /** The answer of every contract. */
  refusal: Error
  /** The role that every account holds. */
  role: Hex
}>

/** Returns the options of a gateway that is right, but for these changes. */
function optionsFor(chain: Chain = {}, changed: Partial<Options> = {}, lines: string[] = []): Options {
  const results: Partial<Record<Hex, () => Hex>> = {
    [selector('name')]: () => encodeAbiParameters([{ type: 'string' }], [chain.name ?? 'USDC']),
    [selector('version')]: () => encodeAbiParameters([{ type: 'string' }], [chain.version ?? '2']),
    [selector('decimals')]: () => toHex(chain.decimals ?? 6n, { size: 32 }),
    [selector('DOMAIN_SEPARATOR')]: () => chain.separator ?? domainSeparator(tokenDomain(sale)),
  }
  const answers: Readonly<Record<string, (given: never) => unknown>> = {
    eth_chainId: () => chain.chainId ?? '0x14a34',
    eth_gasPrice: () => toHex(chain.gasPrice ?? 1_000_000n),
    eth_getTransactionCount: () => '0x0',
    eth_getCode: (address: Hex) => (address === signer || address === chain.missing ? '0x' : '0x12'),
    eth_getBalance: (address: Hex) => toHex(chain.balances?.[address] ?? (address === signer ? 0n : ether)),
    // The first argument of hasRole is the role.
    eth_call: ({ data }: { data: Hex }) =>
      results[data.slice(0, 10) as Hex]?.() ?? toHex(chain.role?.slice(2) === data.slice(10, 74), { size: 32 }),
  }
  return {
    rpc: async (method, [given] = []) => {
      if (method === chain.fails) throw new Error('no answer')
      if (method === 'eth_call' && chain.refusal) throw chain.refusal
      return answers[method]?.(given as never)
    },
    heads: clock(0n),
    terms: sale,
    contract,
    key: () => ({ address: signer, keyId: 'attest-1' }) as ReturnType<Options['key']>,
    facilitator: { supports: async () => true },
    facilitatorAddresses: payers,
    ledger: { find: async () => undefined },
    allowHighPrice: false,
    log: createLog((line) => lines.push(line)),
    ...changed,
  }
}

/** A clock that is ahead of the chain by so many seconds. */
const clock = (ahead: bigint) => ({ clockError: singleFlight(async () => ahead) })

const selector = (functionName: 'name' | 'version' | 'decimals' | 'DOMAIN_SEPARATOR') =>
  encodeFunctionData({ abi: tokenAbi, functionName, args: [] })

const channels = { receiverAuthorizers: [payTo], withdrawDelay: 1, minDeposit: 1n } as const
const withChannels = { ...sale, channels }

describe('the checks of a gateway', () => {
  const all = ['price', 'chain', 'clock', 'token', 'contract', 'facilitator', 'gas', 'ledger', 'index', 'signer']
  const differs = 'The payment token’s name, version, decimals or domain differ from the offer.'
  const short = 'An account of the facilitator is short of ether.'
  const cases: readonly (readonly [
    check: string,
    state: string,
    message: string,
    chain?: Chain,
    options?: Partial<Options>,
  ])[] = [
    ['price', 'ok', '10000 units of USDC.'],
    ['price', 'wrong', 'The price is zero.', {}, { terms: { ...sale, price: 0n } }],
    ['price', 'ok', '100000 units of USDC.', {}, { terms: { ...sale, price: 100_000n } }],
    ['price', 'ok', '100001 units of USDC.', {}, { terms: { ...sale, price: 100_001n }, allowHighPrice: true }],
    [
      'price',
      'wrong',
      'The price is above 100000 units, which common buyers refuse by default; it must be allowed explicitly.',
      {},
      { terms: { ...sale, price: 100_001n } },
    ],
    ['chain', 'ok', 'Chain 84532.'],
    ['chain', 'wrong', 'The provider serves chain 1.', { chainId: '0x1' }],
    ['chain', 'missing', 'No answer.', { fails: 'eth_chainId' }],
    ['clock', 'ok', 'This clock agrees with the chain.'],
    ['clock', 'wrong', 'This clock is 61 s ahead of the chain.', {}, { heads: clock(61n) }],
    ['clock', 'wrong', 'This clock is 61 s behind the chain.', {}, { heads: clock(-61n) }],
    ['token', 'ok', 'USDC 2.'],
    ['token', 'wrong', differs, { name: 'USD Coin' }],
    ['token', 'wrong', differs, { version: '1' }],
    ['token', 'wrong', differs, { decimals: 18n }],
    ['token', 'wrong', differs, { separator: toHex(1n, { size: 32 }) }],
    ['token', 'wrong', 'There is no contract at the payment token’s address.', { missing: token }],
    ['contract', 'ok', 'The core contract is there.'],
    ['contract', 'wrong', 'There is no contract at the core contract’s address.', { missing: contract }],
    ['facilitator', 'ok', 'The facilitator serves exact payments on this chain.'],
    [
      'facilitator',
      'wrong',
      'The facilitator does not serve exact payments on this chain.',
      {},
      { facilitator: { supports: async () => false } },
    ],
    ['gas', 'ok', 'Every account of the facilitator has ether.', { balances: { [payers[1]]: ether / 1_000n } }],
    ['gas', 'missing', short, { balances: { [payers[1]]: ether / 1_000n - 1n } }],
    ['gas', 'ok', 'The remote facilitator pays for settlements.', {}, { facilitatorAddresses: [] }],
    ['channels', 'ok', 'Payment channels are offered.', {}, { terms: withChannels }],
    [
      'channels',
      'missing',
      'The contracts of the payment channels are not on this chain.',
      { missing: channelContract },
      { terms: withChannels },
    ],
    ['ledger', 'ok', 'The ledger answers.', {}, { takesWrites: async () => true }],
    ['ledger', 'missing', 'The ledger takes no writes.', {}, { takesWrites: async () => false }],
    ['index', 'ok', 'No fault of the index is known here.'],
    [
      'index',
      'missing',
      'The index cannot be brought up to date, or differs from the chain.',
      {},
      { isIndexFaulty: async () => true },
    ],
    ['signer', 'ok', `${signer} signs nothing else.`],
    [
      'signer',
      'missing',
      'There is no attestation key here any more.',
      {},
      {
        key: () => {
          throw new Error('none')
        },
      },
    ],
  ]
  for (const [check, state, message, chain, options] of cases)
    it(`${check}: ${message}`, async () => {
      using selfCheck = createSelfCheck(optionsFor(chain, options))
      assert.equal(selfCheck.ready(), false)
      await selfCheck.run()
      assert.deepEqual(selfCheck.results().get(check), { state, message })
      assert.deepEqual(
        [...selfCheck.results()].filter(([name, found]) => name !== check && found.state !== 'ok'),
        [],
      )
      assert.equal(selfCheck.ready(), state !== 'wrong')
    })

  it('reject an attestation key that is an account of the facilitator, or signs claims', async () => {
    for (const options of [
      { facilitatorAddresses: [...payers, signer] },
      { terms: { ...withChannels, channels: { ...channels, receiverAuthorizers: [payTo, signer] as const } } },
    ]) {
      using selfCheck = createSelfCheck(optionsFor({}, options))
      await selfCheck.run()
      assert.equal(selfCheck.results().get('signer')?.state, 'wrong')
    }
  })

  it('reject an attestation key that holds any role of the contract', async () => {
    const source = readFileSync(new URL('../../../contracts/src/Lifecycle.sol', import.meta.url), 'utf8')
    const roles = [...source.matchAll(/keccak256\("(\w+_ROLE)"\)/g)].map(([, name = '']) => keccak256(toHex(name)))
    assert.ok(roles.length > 5)
    for (const role of [...roles, toHex(0n, { size: 32 })]) {
      using selfCheck = createSelfCheck(optionsFor({ role }))
      await selfCheck.run()
      assert.equal(selfCheck.results().get('signer')?.state, 'wrong', role)
    }
  })

  it('note the ether of each account, and leave out what is not offered', async () => {
    const noted: unknown[] = []
    const onBalance = (...given: unknown[]) => noted.push(given)
    using selfCheck = createSelfCheck(optionsFor({ balances: { [payers[1]]: 7n } }, { onBalance }))
    await selfCheck.run()
    assert.deepEqual(noted, [
      [payers[0], ether],
      [payers[1], 7n],
    ])
    assert.deepEqual([...selfCheck.results().keys()], all)
  })

  it('are wrong where the token reverts or returns nothing, and missing where no provider answers', async () => {
    const states = async (refusal: Error) => {
      using selfCheck = createSelfCheck(optionsFor({ refusal }))
      await selfCheck.run()
      return ['token', 'signer'].map((name) => selfCheck.results().get(name)?.state)
    }
    assert.deepEqual(await states(new RpcError('rejected', 'execution reverted', {})), ['wrong', 'ok'])
    assert.deepEqual(await states(new NoDataError()), ['wrong', 'ok'])
    assert.deepEqual(await states(new RpcError('rejected', 'too many requests', {})), ['missing', 'missing'])
  })

  it('stay wrong until they are right, and log each change once', async () => {
    const [chain, lines]: [Chain, string[]] = [{}, []]
    using selfCheck = createSelfCheck(optionsFor(chain, {}, lines))
    const run = async (changed: Chain) => {
      Object.assign(chain, { chainId: '0x14a34', fails: undefined }, changed)
      await selfCheck.run()
      const levels = lines.splice(0).map((line) => (JSON.parse(line) as { level: string }).level)
      return [selfCheck.results().get('chain')?.state, ...levels]
    }
    assert.deepEqual(await run({}), ['ok'])
    assert.deepEqual(await run({ fails: 'eth_chainId' }), ['missing', 'warn'])
    assert.deepEqual(await run({ chainId: '0x1' }), ['wrong', 'error'])
    assert.deepEqual(await run({ chainId: '0x1' }), ['wrong'])
    assert.deepEqual(await run({ fails: 'eth_chainId' }), ['wrong', 'warn'])
    assert.deepEqual(await run({}), ['ok', 'info'])
    assert.deepEqual(await run({}), ['ok'])
  })
})

describe('what a payment needs', () => {
  const gwei = 10n ** 9n
  const cost = 240_000n * gwei
  for (const [what, is, chain, options] of [
    ['is there', true, {}, {}],
    [
      'is there where one of two accounts can just pay',
      true,
      { gasPrice: gwei, balances: { [payers[0]]: 0n, [payers[1]]: cost } },
      {},
    ],
    [
      'is missing where none can pay',
      false,
      { gasPrice: gwei, balances: { [payers[0]]: 0n, [payers[1]]: cost - 1n } },
      {},
    ],
    ['is there at the highest price of gas', true, { gasPrice: 50n * gwei }, {}],
    ['is missing above that', false, { gasPrice: 50n * gwei + 1n }, {}],
    [
      'is there at any price where a remote facilitator pays',
      true,
      { gasPrice: 51n * gwei },
      { facilitatorAddresses: [] },
    ],
    ['is missing on another chain', false, { chainId: '0x1' }, {}],
    ['is missing where the provider does not answer', false, { fails: 'eth_gasPrice' }, {}],
    ['is missing without writes', false, {}, { takesWrites: async () => false }],
    ['is missing without a ledger', false, {}, { ledger: { find: () => Promise.reject(new Error('gone')) } }],
    ['is missing without a facilitator', false, {}, { facilitator: { supports: async () => false } }],
  ] as const)
    it(what, async () => {
      using selfCheck = createSelfCheck(optionsFor(chain, options))
      assert.equal(await selfCheck.canSell(), is)
    })

  it('is looked for once in two seconds', async (t) => {
    let [ticks, looks] = [1_000, 0]
    t.mock.method(performance, 'now', () => ticks)
    const supports = async () => (looks += 1) > 1
    using selfCheck = createSelfCheck(optionsFor({}, { facilitator: { supports } }))
    const look = async () => [await selfCheck.canSell(), looks]
    assert.deepEqual(await Promise.all([look(), look()]), [
      [false, 1],
      [false, 1],
    ])
    ticks += 2_000
    assert.deepEqual(await look(), [false, 1])
    ticks += 1
    assert.deepEqual(await look(), [true, 2])
  })

  it('is examined without a gateway, with the next settlement and the reason of a check without an answer', async () => {
    const found = await examineSale(optionsFor({ fails: 'eth_gasPrice' }, { terms: withChannels }))
    assert.deepEqual(
      found.map(({ name, state }) => [name, state]),
      ['price', 'chain', 'clock', 'token', 'contract', 'facilitator', 'gas', 'channels', 'settlement'].map((name) => [
        name,
        name === 'settlement' ? 'missing' : 'ok',
      ]),
    )
    assert.equal(found.at(-1)?.message, 'The check «settlement» has no answer: no answer.')
    const others = await examineSale(optionsFor({ gasPrice: 10n ** 12n }))
    assert.deepEqual([others.length, others.at(-1)?.message], [8, 'The price of gas is above the limit.'])
  })
})

describe('the check of the signer', () => {
  const address = `0x${'ab'.repeat(20)}`
  const free: Record<string, string> = { eth_getCode: '0x', eth_call: `0x${'0'.repeat(64)}` }

  /** Returns what is found of a key; `answers` are those of the chain, by method. */
  async function found(key: object, answers = free, terms = { payTo: `0x${'cd'.repeat(20)}` }) {
    using selfCheck = createSelfCheck({
      key: () => ({ address, keyId: 'attest-1', ...key }),
      terms,
      facilitatorAddresses: [],
      rpc: async (method: string) => answers[method] ?? '0x0',
      contract: `0x${'ef'.repeat(20)}`,
      log: createLog(() => {}),
    } as unknown as Parameters<typeof createSelfCheck>[0])
    await selfCheck.run()
    return selfCheck.results().get('signer')
  }

  it('says why the attestation key signs nothing', async () => {
    const cannotSign = 'It begins on 2036-11-25T00:45:32Z only.'
    assert.deepEqual(await found({ cannotSign }), { state: 'missing', message: cannotSign })
  })

  it('rejects a key that signs anything but attestations, and names what', async () => {
    const sent = 'The attestation key has sent transactions or holds code.'
    for (const [answers, state, message] of [
      [{ eth_getTransactionCount: '0x1' }, 'wrong', sent],
      [{ eth_getCode: '0xef0100' }, 'wrong', sent],
      [{ eth_call: `0x${'0'.repeat(63)}1` }, 'wrong', 'The attestation key holds a role of the core contract.'],
      [{ eth_getBalance: '0x1' }, 'missing', 'The attestation key’s account holds ether.'],
    ] as const)
      assert.deepEqual(await found({}, { ...free, ...answers }), { state, message })
    const message = 'The attestation key is also the recipient, the facilitator, or the key of the payment channels.'
    assert.deepEqual(await found({}, free, { payTo: address.toUpperCase().replace('X', 'x') }), {
      state: 'wrong',
      message,
    })
    assert.equal((await found({}))?.state, 'ok')
  })
})

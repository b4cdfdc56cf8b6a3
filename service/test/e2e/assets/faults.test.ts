/**
 * A provider with forged answers, or one that lags, hangs or stops: 502 CHAIN_UNAVAILABLE in time. With a second, honest one 200 (spec
 * §4.1, §7).
 */
import assert from 'node:assert/strict'
import { afterEach, before, describe, it } from 'node:test'
import type { Verdict } from '@touchstone/verdict'
import { createVerdicts } from '../../../src/assets/verdicts.ts'
import { createAssetReader } from '../../../src/chain/assets/reader.ts'
import { createChainSource } from '../../../src/chain/rpc/source.ts'
import { readConfig } from '../../../src/app/config/config.ts'
import { createLog } from '../../../src/lib/log.ts'
import { verificationHost } from '../../../src/hosts/verification/host.ts'
import { type Fault, type FaultName, startFaultRpc } from '../../support/fault-rpc.ts'
import { useOpened } from '../../support/opened.ts'
import { startWorld } from '../../support/world.ts'

const silent = createLog(() => {}, 'silent')

type Rewrite = (method: string, params: readonly unknown[], result: unknown) => unknown

/** Forges the pinned read: the record word of one token is the third from the end of `getAssetsWithMetadata`. */
const record =
  (change: (word: string) => string): Rewrite =>
  (method, _params, result) =>
    method === 'eth_call' && typeof result === 'string' && result.length === 2 + 64 * 6
      ? `0x${result.slice(2, 2 + 64 * 3)}${change(result.slice(2 + 64 * 3, 2 + 64 * 4))}${result.slice(2 + 64 * 4)}`
      : result
const wholeResult =
  (change: (data: string) => string): Rewrite =>
  (method, _params, result) =>
    method === 'eth_call' ? change(String(result)) : result

const faults: readonly (readonly [string, Fault | FaultName])[] = [
  ...(
    [
      'hang',
      'die',
      'drip',
      'status500',
      'status429',
      'garbage',
      'truncated',
      'wrong-id',
      'null-result',
      'rpc-error',
      'not-canonical',
      'other-chain',
      'empty-result',
    ] as const
  ).map((name) => [name, name] as const),
  ['state 7', { rewrite: record((word) => `${word.slice(0, 6)}07${word.slice(8)}`) }],
  ['state 0 with an owner', { rewrite: record((word) => `${word.slice(0, 6)}00${word.slice(8)}`) }],
  ['short data', { rewrite: wholeResult((data) => data.slice(0, -64)) }],
  ['long data', { rewrite: wholeResult((data) => data + '0'.repeat(64)) }],
  ['half a byte', { rewrite: wholeResult((data) => data.slice(0, -1)) }],
  [
    'a header that is not the hash’s',
    {
      rewrite: (method, _params, result) =>
        method.startsWith('eth_getBlock') && result !== null
          ? { ...(result as object), stateRoot: `0x${'11'.repeat(32)}` }
          : result,
    },
  ],
]

type Answer = { status: number; body: Partial<Verdict> & { error?: { code: string } } }

describe('the keyless read over providers that misbehave', () => {
  const world = useOpened(startWorld)
  const bad = useOpened(() => startFaultRpc({ target: world.chainUrl }))
  let token: bigint
  before(async () => {
    token = await world.mint()
    await world.write({ kind: 'bindTag', tokenId: token, tagHash: `0x${'77'.repeat(32)}` })
  })
  afterEach(() => bad.set('none'))

  /** A host of its own for each case: no breaker, head or chain id is remembered from another. */
  async function answer(env: Record<string, string>): Promise<Answer> {
    const { chain } = readConfig({ ...world.settings, CHAIN_CACHE: 'off', ...env })
    const contract = world.contract
    const source = createChainSource({ ...chain, contract, chainId: 84532, log: silent })
    const reader = createAssetReader({ ...chain, source, contract, log: silent })
    const verdicts = createVerdicts({
      assets: reader,
      metadata: { get: async () => undefined },
      contract,
      maxEntries: 10,
      log: silent,
    })
    const response = await verificationHost({
      ...world.components,
      baseUrl: world.url,
      verdicts,
      clientKey: () => '',
      log: silent,
    }).request(`/api/asset/${token}`)
    reader.close()
    await source.close()
    return { status: response.status, body: (await response.json()) as Answer['body'] }
  }

  for (const [name, fault] of faults) {
    it(`answers 502 in time, never a verdict, when the only one has: ${name}`, async () => {
      bad.set(fault)
      const { status, body } = await answer({ CHAIN_RPC_URLS: bad.url })
      assert.deepEqual([status, body.error?.code], [502, 'CHAIN_UNAVAILABLE'])
      assert.ok(!JSON.stringify(body).includes('127.0.0.1'))
    })

    it(`answers 200 with the truth when one of two has: ${name}`, async () => {
      bad.set(fault)
      const { status, body } = await answer({ CHAIN_RPC_URLS: `${bad.url},${world.chainUrl}` })
      assert.deepEqual([status, body.state], [200, 'BOUND'])
    })
  }

  for (const [trust, status] of [
    ['rpc', 200],
    ['proof', 502],
    ['quorum', 502],
  ] as const) {
    it(`${status === 200 ? 'does not detect' : 'detects'} a consistent forgery in ${trust} mode`, async () => {
      const env = { CHAIN_TRUST: trust, CHAIN_RPC_URLS: trust === 'quorum' ? `${bad.url},${world.chainUrl}` : bad.url }
      assert.deepEqual((await answer(env)).status, 200)
      bad.set({
        rewrite: (method, params, result) =>
          method === 'eth_getProof' ? tampered(result) : claimed(method, params, result),
      })
      const { body, ...rest } = await answer(env)
      assert.equal(rest.status, status)
      if (status === 200) assert.equal(body.state, 'CLAIMED')
    })
  }
})

const claimed = record((word) => `${word.slice(0, 6)}04${word.slice(8)}`)

function tampered(proof: unknown): unknown {
  const { storageProof, ...rest } = proof as { storageProof: { value: string }[] }
  return { ...rest, storageProof: storageProof.map((entry) => ({ ...entry, value: '0x1' })) }
}

/** A verdict stays checkable at its block, and every alteration of it is reported (spec §1, «Trust model»). */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import fc from 'fast-check'
import {
  deployments,
  isOwner,
  maxTokenId,
  metadataHashOf,
  prove,
  recheck,
  untrustedOf,
  type Verdict,
} from '../src/index.ts'
import { claimed, operator, startChain } from './_chain.ts'
import { anyRecord } from './_records.ts'
import { failed, found } from './_report.ts'
import { forward } from './_server.ts'

const chain = await startChain()
after(() => chain[Symbol.asyncDispose]())

const { rpcUrl, contract, codeHash } = chain
const checkers = {
  recheck: (verdict: unknown) => recheck(verdict, { rpcUrl, contract }),
  prove: (verdict: unknown) => prove(verdict, { rpcUrl, contract, codeHash }),
}

const paths =
  `version token_id authentic state state_code flagged owner_commitment chainRef network audit_status production_ready untrusted
  chainRef.chain_id chainRef.contract chainRef.token_id chainRef.block_number chainRef.block_hash`.split(/\s+/)

/** A copy of the verdict with one member changed, or taken away when the value is `undefined`. */
function altered(verdict: Verdict, path: string, value: unknown): unknown {
  const copy = structuredClone(verdict) as unknown as Record<string, unknown>
  const [first = '', second] = path.split('.')
  const holder = second === undefined ? copy : (copy[first] as Record<string, unknown>)
  if (value === undefined) delete holder[second ?? first]
  else holder[second ?? first] = value
  return copy
}

function valueAt(verdict: Verdict, path: string): unknown {
  return path.split('.').reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], verdict)
}

/** Values that stand near the true one: other types, other case, other numbers, other hashes. */
function wrongValues(verdict: Verdict, path: string, noise: string): unknown[] {
  const truth = valueAt(verdict, path)
  const text = String(truth)
  const near = [
    text,
    [truth],
    `${text} `,
    `0${text}`,
    text.toLowerCase(),
    text.toUpperCase(),
    Number(text),
    Number(text) + 1,
    !truth,
  ]
  const others = [
    undefined,
    null,
    0,
    '',
    {},
    [],
    verdict.chainRef.block_hash,
    `0x${noise}`,
    `0x${noise.slice(24)}`,
    noise,
    'CLAIMED',
    4,
  ]
  return [...near, ...others].filter((value) => value !== truth && !(path === 'untrusted' && value === undefined))
}

describe('recheck and prove', () => {
  it('ask for the record at a block of the canonical chain only', async () => {
    const pins: unknown[] = []
    await using recording = await forward(rpcUrl, ({ method, params }) => {
      if (method === 'eth_call') pins.push(params[1])
    })
    const [record] = fc.sample(anyRecord, { numRuns: 1, seed: 1 })
    if (record !== undefined) await chain.store(999n, record)
    const verdict = await chain.verdict(999n)
    assert.ok((await recheck(verdict, { rpcUrl: recording.url, contract })).ok)
    const pin = { blockHash: verdict.chainRef.block_hash, requireCanonical: true }
    assert.deepEqual(pins, [pin, pin])
  })

  it('derive the verdict again at its block after the state has changed, and report every alteration', async () => {
    const runs = fc.record(
      {
        tokenId: fc.oneof(fc.bigInt({ min: 1000n, max: maxTokenId }), fc.constant(maxTokenId)),
        record: anyRecord,
        later: anyRecord,
        noise: fc.stringMatching(/^[0-9a-f]{64}$/),
      },
      { noNullPrototype: true },
    )
    const property = fc.asyncProperty(runs, async ({ tokenId, record, later, noise }) => {
      await chain.store(tokenId, record)
      const verdict: Verdict = { ...(await chain.verdict(tokenId)), untrusted: untrustedOf({ name: 'Jacket' }) }
      await chain.store(tokenId, later)
      for (const [name, check] of Object.entries(checkers)) {
        assert.deepEqual(failed(await check(verdict)), [], name)
        assert.ok((await check(JSON.parse(JSON.stringify(verdict)))).ok)
        for (const path of paths) {
          for (const value of wrongValues(verdict, path, noise)) {
            const report = await check(altered(verdict, path, value))
            assert.equal(report.ok, false, `${name} accepts ${path} = ${JSON.stringify(value)}`)
          }
        }
        for (const path of ['extra', 'chainRef.extra', 'untrusted.extra', '__proto__x']) {
          assert.equal((await check(altered(verdict, path, 'x'))).ok, false, `${name} accepts the key ${path}`)
        }
      }
    })
    await fc.assert(property, { numRuns: 4, endOnFailure: true })
  })

  it('follow a real life of an item: mint, bind, activate, flag, resolve, recycle', async () => {
    const reason = 7n
    const steps: [signature: string, ...values: bigint[]][] = [
      ['mint(address,bytes32)', BigInt(operator), 5n],
      ['bindTag(uint256,bytes32)', 1n, 9n],
      ['activate(uint256)', 1n],
      ['flag(uint256,uint8,bytes32)', 1n, 4n, reason],
      ['resolve(uint256,uint8,bytes32)', 1n, 4n, reason],
      ['recycle(uint256)', 1n],
    ]
    const verdicts: Verdict[] = []
    for (const step of steps) {
      await chain.send(...step)
      verdicts.push(await chain.verdict(1n))
    }
    const states = ['MINTED', 'BOUND', 'ACTIVATED', 'FLAGGED', 'ACTIVATED', 'RECYCLED']
    assert.deepEqual(
      verdicts.map(({ state }) => state),
      states,
    )
    assert.deepEqual(
      verdicts.map(({ authentic }) => authentic),
      [true, true, true, false, true, false],
    )
    for (const verdict of verdicts) {
      assert.ok(isOwner(verdict, operator))
      assert.deepEqual(failed(await checkers.recheck(verdict)), [])
      assert.deepEqual(failed(await checkers.prove(verdict)), [])
    }
  })

  it('distinguish two tokens of one owner', async () => {
    await chain.store(71n, claimed)
    await chain.store(72n, claimed)
    const verdict = await chain.verdict(71n)
    const moved = altered(altered(verdict, 'token_id', '72') as Verdict, 'chainRef.token_id', '72')
    for (const check of Object.values(checkers)) assert.deepEqual(failed(await check(moved)), ['owner_commitment'])
  })

  it('report a verdict on a token that does not exist', async () => {
    await chain.store(81n, claimed)
    const verdict = altered(altered(await chain.verdict(81n), 'token_id', '82') as Verdict, 'chainRef.token_id', '82')
    for (const check of Object.values(checkers)) assert.equal(found(await check(verdict), 'state'), 'NONE')
  })

  it('report another token than the caller asked for', async () => {
    const verdict = await chain.verdict(71n)
    for (const check of [recheck, prove]) {
      for (const tokenId of [71n, '71', '0071'])
        assert.deepEqual(failed(await check(verdict, { rpcUrl, contract, tokenId })), [])
      for (const tokenId of [72n, '72', '', 'x', `${'0'.repeat(78)}71`])
        assert.deepEqual(failed(await check(verdict, { rpcUrl, contract, tokenId })), ['token asked for'])
    }
  })

  it('report another contract than the caller pins, and are undecided when nothing is pinned', async () => {
    const verdict = await chain.verdict(71n)
    assert.deepEqual(failed(await recheck(verdict, { rpcUrl, contract: operator })), ['contract'])
    assert.deepEqual(failed(await prove(verdict, { rpcUrl, contract: operator })), ['contract'])
    for (const bare of [await recheck(verdict, { rpcUrl }), await prove(verdict, { rpcUrl })]) {
      assert.deepEqual([bare.ok, bare.outcome, failed(bare)], [false, 'undecided', ['contract']])
      assert.match(found(bare, 'contract') ?? '', /^not pinned/)
    }
    const wrong = await recheck({ ...verdict, state: 'MINTED' }, { rpcUrl })
    assert.deepEqual([wrong.ok, wrong.outcome], [false, 'differs'])
    const pinned = await prove(verdict, { rpcUrl, contract })
    assert.equal(pinned.outcome, 'agrees')
    assert.equal(pinned.checks.find(({ field }) => field === 'proof.code')?.claimed, 'not pinned by the caller')
  })

  it('do not pass a verdict of a contract that the service deployed itself, which answers truly about itself', async () => {
    await using foreign = await startChain({ nonce: 1 })
    await foreign.store(5n, claimed)
    const forged = await foreign.verdict(5n)
    for (const check of [recheck, prove]) {
      assert.equal((await check(forged, { rpcUrl: foreign.rpcUrl })).outcome, 'undecided')
      for (const pins of [{ contract }, { deployment: 'local' }, { deployment: 'base-sepolia' }] as const)
        assert.equal((await check(forged, { rpcUrl: foreign.rpcUrl, ...pins })).outcome, 'differs')
    }
  })

  it('pin the contract and its code by the name of a known deployment', async () => {
    const verdict = await chain.verdict(71n)
    const report = await prove(verdict, { rpcUrl, deployment: 'local' })
    assert.deepEqual(failed(report), [])
    assert.equal(report.checks.find(({ field }) => field === 'proof.code')?.claimed, deployments.local.codeHash)
    const changed = { ...deployments.local, codeHash: verdict.chainRef.block_hash }
    assert.deepEqual(failed(await prove(verdict, { rpcUrl, deployment: changed })), ['proof.code'])
  })

  it('pin the public deployment by default, and know that its slots are not published', async () => {
    const verdict = await chain.verdict(71n)
    const there = altered(verdict, 'chainRef.contract', deployments['base-sepolia'].contract)
    const report = await recheck(there, { rpcUrl })
    assert.equal(report.checks.find(({ field }) => field === 'contract')?.ok, true)
    assert.equal((await prove(there, { rpcUrl })).outcome, 'undecided')
  })

  it('report altered texts: a control character, another warning, another key', async () => {
    const untrusted = untrustedOf({ name: 'Jacket', image: 'https://assets.example/a.webp' })
    const verdict = { ...(await chain.verdict(71n)), untrusted }
    const texts: [name: string, untrusted: unknown][] = [
      ['a NUL', { ...untrusted, name: 'Jac\0ket' }],
      ['a bidi override', { ...untrusted, name: 'Jac\u202eket' }],
      ['a space at the end', { ...untrusted, name: 'Jacket ' }],
      ['a text too long', { ...untrusted, name: 'J'.repeat(201) }],
      ['an image of another scheme', { ...untrusted, image: 'javascript:alert(1)' }],
      ['an image that is not serialised', { ...untrusted, image: 'HTTPS://assets.example/a.webp' }],
      ['another warning', { ...untrusted, _warning: 'All of this is verified.' }],
      ['no warning', { name: 'Jacket' }],
      ['another key', { ...untrusted, price: '1' }],
      ['an empty text', { ...untrusted, sku: '' }],
    ]
    for (const check of Object.values(checkers)) {
      assert.deepEqual(failed(await check(verdict)), [])
      for (const [name, value] of texts)
        assert.deepEqual(failed(await check({ ...verdict, untrusted: value })), ['untrusted'], name)
    }
  })

  it('hold the texts against the hash on chain where the metadata is given', async () => {
    const metadata = '{"brand":"Nord","name":"Jac\u200bket"}'
    await chain.send('mint(address,bytes32)', BigInt(operator), BigInt(metadataHashOf(metadata)))
    const tokenId = BigInt((await chain.rpc('eth_call', [{ to: contract, data: '0x18160ddd' }, 'latest'])) as string)
    const verdict = { ...(await chain.verdict(tokenId)), untrusted: untrustedOf(JSON.parse(metadata)) }
    const { untrusted, ...bare } = verdict
    const wrong: [of: unknown, metadata: string, fields: string[]][] = [
      [verdict, metadata.replace('Nord', 'Sud'), ['metadata.hash', 'metadata.texts']],
      [{ ...verdict, untrusted: { ...untrusted, brand: 'Sud' } }, metadata, ['metadata.texts']],
      [{ ...verdict, untrusted: untrustedOf({ brand: 'Nord' }) }, metadata, ['metadata.texts']],
      [bare, metadata, ['metadata.texts']],
      [verdict, `${metadata} `, ['metadata.hash']],
      [verdict, 'no JSON', ['metadata.hash', 'metadata.texts']],
    ]
    for (const check of [recheck, prove]) {
      const report = await check(verdict, { rpcUrl, contract, metadata })
      assert.deepEqual(failed(report), [])
      assert.equal(found(report, 'metadata.texts'), 'what the minter committed to')
      for (const [of, text, fields] of wrong)
        assert.deepEqual(failed(await check(of, { rpcUrl, contract, metadata: text })), fields)
    }
  })

  it('do not take a document with a lone surrogate for the one with U+FFFD that has its hash', async () => {
    const committed = '{"name":"Jac\ufffdket"}'
    await chain.send('mint(address,bytes32)', BigInt(operator), BigInt(metadataHashOf(committed)))
    const tokenId = BigInt((await chain.rpc('eth_call', [{ to: contract, data: '0x18160ddd' }, 'latest'])) as string)
    const metadata = '{"name":"Jac\ud800ket"}'
    const verdict = { ...(await chain.verdict(tokenId)), untrusted: untrustedOf(JSON.parse(metadata)) }
    for (const check of [recheck, prove])
      assert.deepEqual(failed(await check(verdict, { rpcUrl, contract, metadata })), ['metadata.hash'])
  })

  const noVerdicts = [
    undefined,
    null,
    7,
    'text',
    [],
    {},
    { chainRef: null },
    { token_id: '1', chainRef: {} },
    new Map(),
    () => 1,
  ]
  it('report what is no verdict at all, without asking anybody', async () => {
    for (const thing of noVerdicts) assert.equal((await recheck(thing, { rpcUrl: 'http://127.0.0.1:1' })).ok, false)
    for (const thing of noVerdicts) assert.equal((await prove(thing, { rpcUrl: 'http://127.0.0.1:1' })).ok, false)
  })

  it('show what a verdict hides in printable ASCII, cut short', async () => {
    const verdict = await chain.verdict(71n)
    const report = await recheck(altered(verdict, 'network', `base-sepolia\u202e\x1b[2J${'x'.repeat(1000)}`), {
      rpcUrl,
      contract,
    })
    const claimed = report.checks.find(({ field }) => field === 'network')?.claimed ?? ''
    assert.match(claimed, /^base-sepolia\\u202e\\u001b\[2Jx+…$/)
    assert.ok(claimed.length < 300)
  })
})

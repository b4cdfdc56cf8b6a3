/** `touchstone verify` as a process: what it takes for a yes, and what its exit codes mean. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { recordSlot, type Hex, type ProofBundle, type Verdict } from '@touchstone/verdict'
import { startFaultRpc } from '../../support/fault-rpc.ts'
import { serve, type Served } from '../../support/http.ts'
import { touchstone, type Ran, warmProgram } from '../../support/processes/cli.ts'
import { startWorld, type World } from '../../support/world.ts'

const agrees = /Every field agrees with the chain\./
const foreignContract: Hex = '0x0000000000000000000000000000000000bad000'

describe('touchstone verify', () => {
  let world: World
  let url: string
  /** The verdict with its texts; that of a bundle has none. */
  let verdict: Verdict
  let bundle: ProofBundle
  let metadata: string
  const bodies = new Map<string, unknown>()
  let server: Served

  before(async () => {
    world = await startWorld({ env: { PROOF_BUNDLE: 'on' } })
    server = await serve((request, response) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(bodies.get(request.url ?? '')))
    })
    const tokenId = await world.mint({ name: 'Jacket', brand: 'Nord' })
    url = `${world.url}/api/asset/${tokenId}`
    verdict = (await (await fetch(url)).json()) as Verdict
    bundle = (await (await world.get(`/api/asset/${tokenId}/proof`)).json()) as ProofBundle
    await writeFile(join(world.settings.DATA_DIR, 'bundle.json'), JSON.stringify(bundle))
    metadata = join(world.settings.DATA_DIR, 'metadata.json')
    await writeFile(metadata, '{"brand":"Nord","name":"Jacket"}')
    warm = warmProgram(world.settings.DATA_DIR)
  })
  after(async () => {
    await server?.close()
    await world.end()
  })

  let warm: ReturnType<typeof warmProgram>
  const run = (...args: string[]): Promise<Ran> => warm('verify', ...args)
  const asProcess = (...args: string[]): Promise<Ran> =>
    touchstone(['verify', ...args], {}, world.settings.DATA_DIR).ended

  /** Serves a verdict, true or forged, at a URL. */
  function offer(name: string, verdict: unknown): string {
    bodies.set(`/${name}`, verdict)
    return `${server.url}/${name}`
  }

  it('exits 0 for a verdict of the pinned contract, by address, by deployment, and with a proof', async () => {
    for (const pins of [
      ['--contract', world.contract],
      ['--deployment', 'local'],
      ['--deployment', 'local', '--prove', '--metadata', metadata],
    ]) {
      const { exit, out, err } = await asProcess(url, '--rpc', world.chainUrl, ...pins)
      assert.deepEqual([exit, err], [0, ''], out)
      assert.match(out, agrees)
    }
  })

  it('exits 2, loudly, for a verdict of a contract that is not pinned, though every field agrees with it', async () => {
    const { exit, out } = await asProcess(url, '--rpc', world.chainUrl)
    assert.equal(exit, 2)
    assert.match(out, /^ {2}\? +contract .*not pinned/m)
    assert.match(out, /^NOT DECIDED/m)
    assert.doesNotMatch(out, agrees)
  })

  it('exits 1 for a verdict of a contract of the service’s own, with a proof too', async () => {
    const code = await world.rpc('eth_getCode', [world.contract, 'latest'])
    const word = await world.rpc('eth_getStorageAt', [world.contract, recordSlot(1n), 'latest'])
    await world.rpc('anvil_setCode', [foreignContract, code])
    await world.rpc('anvil_setStorageAt', [foreignContract, recordSlot(9n), word])
    await world.rpc('anvil_mine', ['0x1'])
    const block = (await world.rpc('eth_getBlockByNumber', ['latest', false])) as { hash: Hex; number: Hex }
    const { untrusted: _texts, ...bare } = bundle.verdict
    const chainRef = {
      ...bare.chainRef,
      contract: '0x0000000000000000000000000000000000bAd000',
      token_id: '9',
      block_number: Number(block.number),
      block_hash: block.hash,
    }
    const forged = offer('forged', { ...bare, token_id: '9', owner_commitment: null, chainRef })
    for (const prove of [[], ['--prove']]) {
      const unpinned = await run(forged, '--rpc', world.chainUrl, ...prove)
      assert.notEqual(unpinned.exit, 0)
      const pinned = await asProcess(forged, '--rpc', world.chainUrl, '--deployment', 'local', ...prove)
      assert.equal(pinned.exit, 1)
      assert.match(pinned.out, /^ {2}DIFFERS contract /m)
    }
  })

  it('exits 1 for a true verdict of another token than the one asked for', async () => {
    const trusted = ['--rpc', world.chainUrl, '--deployment', 'local']
    const paths = ['api/asset/77', 'api/asset/%37%37', 'api/asset/77/?x=1', '?x=1/api/asset/77', 'api/asset/77?x=1']
    const links = paths.map((path) => offer(path, bundle.verdict))
    for (const args of [...links.slice(0, 3).map((link) => [link]), ['77', '--base-url', `${server.url}/?x=1`]]) {
      const { exit, out } = await run(...args, ...trusted)
      assert.equal(exit, 1, args.join(' '))
      assert.match(out, /^ {2}DIFFERS token asked for +\d+ +\(found: 77\)/m)
    }
  })

  it('exits 1 for altered texts and fields', async () => {
    const altered: [name: string, of: Partial<Verdict>, field: string][] = [
      ['name', { untrusted: { ...verdict.untrusted!, name: 'Jac\0ket' } }, 'untrusted'],
      ['warning', { untrusted: { ...verdict.untrusted!, _warning: 'All is well.' } }, 'untrusted'],
      ['state', { state: 'CLAIMED' }, 'state'],
    ]
    for (const [name, of, field] of altered) {
      const link = offer(name, { ...verdict, ...of })
      const { exit, out } = await run(link, '--rpc', world.chainUrl, '--deployment', 'local')
      assert.equal(exit, 1, name)
      assert.match(out, new RegExp(`^  DIFFERS ${field} `, 'm'))
    }
    const { untrusted: _, ...bare } = verdict
    const link = offer('bare', bare)
    assert.equal((await run(link, '--rpc', world.chainUrl, '--deployment', 'local')).exit, 0)
    const held = await run(link, '--rpc', world.chainUrl, '--deployment', 'local', '--metadata', metadata)
    assert.equal(held.exit, 1)
    assert.match(held.out, /^ {2}DIFFERS metadata\.texts +left out/m)
  })

  it('checks a saved bundle offline, or asks a provider whether its block is part of the chain', async () => {
    const hash = bundle.verdict.chainRef.block_hash
    const pins = ['--deployment', 'local']
    assert.equal((await run('bundle.json', ...pins, '--block-hash', hash)).exit, 0)
    assert.equal((await run('bundle.json', ...pins, '--rpc', world.chainUrl)).exit, 0)
    assert.equal((await run('bundle.json', ...pins)).exit, 2)
    assert.equal((await run('bundle.json', '--block-hash', hash)).exit, 2)
    assert.equal((await run('bundle.json', ...pins, '--block-hash', world.codeHash)).exit, 1)
    await writeFile(
      join(world.settings.DATA_DIR, 'altered.json'),
      JSON.stringify({ ...bundle, verdict: { ...bundle.verdict, flagged: true } }),
    )
    assert.equal((await run('altered.json', ...pins, '--block-hash', hash)).exit, 1)
  })

  it('wants a number of several providers to agree', async () => {
    const providers = ['--rpc', world.chainUrl, '--rpc', 'http://127.0.0.1:1', '--deployment', 'local']
    assert.equal((await run(url, ...providers, '--agree', '1')).exit, 0)
    const all = await run(url, ...providers)
    assert.equal(all.exit, 2)
    assert.match(all.out, /^ {2}\? +endpoint 2 of 2 .*RPC_UNAVAILABLE/m)
  })

  it('does not say that all agrees, or that nothing differs, where providers differ', async (test) => {
    const other = await startFaultRpc({ target: world.chainUrl })
    test.after(() => other.close())
    const fork = { hash: `0x${'ab'.repeat(32)}` }
    other.set({
      rewrite: (method, _params, result) =>
        method === 'eth_getBlockByHash' ? null : method === 'eth_getBlockByNumber' ? fork : result,
    })
    const providers = ['--rpc', world.chainUrl, '--rpc', other.url, '--deployment', 'local']
    const one = await run(url, ...providers, '--agree', '1')
    assert.equal(one.exit, 0)
    assert.match(
      one.out,
      /^As many providers as you asked for agree in every field\. Others do not: see the marked rows\./m,
    )
    assert.doesNotMatch(one.out, agrees)
    const two = await run(url, ...providers, '--rpc', 'http://127.0.0.1:1', '--agree', '2')
    assert.equal(two.exit, 2)
    assert.match(two.out, /^NOT DECIDED: the providers do not agree with each other\./m)
  })

  it('decides nothing where the provider does not have the block yet', async (test) => {
    const behind = await startFaultRpc({ target: world.chainUrl })
    test.after(() => behind.close())
    behind.set({ rewrite: (method, _params, result) => (method.startsWith('eth_getBlockBy') ? null : result) })
    const { exit, out } = await run(url, '--rpc', behind.url, '--deployment', 'local')
    assert.equal(exit, 2)
    assert.match(out, /^ {2}\? +block .*it may be behind/m)
    assert.match(out, /^NOT DECIDED: no field disagrees/m)
  })

  it('says that the texts of the minter were not checked, until the metadata is given', async () => {
    const trusted = ['--rpc', world.chainUrl, '--deployment', 'local']
    const swapped = offer('swapped', {
      ...verdict,
      untrusted: { ...verdict.untrusted, name: 'A watch of another brand' },
    })
    const { exit, out } = await run(swapped, ...trusted)
    assert.equal(exit, 0, out)
    assert.match(out, /^Not checked: the texts in untrusted/m)
    assert.doesNotMatch((await run(url, ...trusted, '--metadata', metadata)).out, /Not checked/)
    assert.equal((await run(swapped, ...trusted, '--metadata', metadata)).exit, 1)
  })

  it('exits 2 with one sentence when nothing can be checked', async () => {
    const attempts: [args: string[], sentence: RegExp][] = [
      [[url], /Name a JSON-RPC provider/],
      [['nothing.json', '--rpc', world.chainUrl], /neither a URL with/],
      [[`${world.url}/api/asset/999`, '--rpc', world.chainUrl], /404 ASSET_NOT_FOUND/],
      [['http://127.0.0.1:1/api/asset/1', '--rpc', world.chainUrl], /cannot be reached/],
      [[url, '--rpc', 'http://127.0.0.1:1', '--deployment', 'local'], /RPC did not answer/],
      [[url, '--rpc', world.chainUrl, '--contract', '0x12'], /An address is 0x and 40 hex digits/],
      [[url, '--rpc', world.chainUrl, '--deployment', 'mars'], /Allowed choices are/],
      [[url, '--rpc', world.chainUrl, '--agree', '2', '--deployment', 'local'], /a number that must agree from 1 to 1/],
      [[], /missing required argument/],
    ]
    for (const [args, sentence] of attempts) {
      const { exit, out, err } = await run(...args)
      assert.deepEqual([exit, out], [2, ''], args.join(' '))
      assert.match(err, /^touchstone: [^\n]+\n$/)
      assert.match(err, sentence)
    }
    assert.equal((await run('--help')).exit, 0)
  })

  it('exits 2 for a true verdict of two hours ago, which says nothing about now', async () => {
    const kept = offer('kept', bundle.verdict)
    await world.rpc('evm_increaseTime', [7200])
    await world.rpc('anvil_mine', ['0x1'])
    const trusted = ['--rpc', world.chainUrl, '--deployment', 'local']
    const { exit, out } = await run(kept, ...trusted)
    assert.equal(exit, 2)
    assert.match(out, /^ {2}\? +block\.age .*2 h before the latest block: the token may have changed since/m)
    assert.equal((await run(kept, ...trusted, '--max-age', '8000')).exit, 0)
    assert.equal((await run('bundle.json', ...trusted)).exit, 0)
    assert.equal((await run('bundle.json', ...trusted, '--max-age', '60')).exit, 2)
  })
})

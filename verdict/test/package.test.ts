/**
 * Tests the package as it would be published: its form and its types. It must run in Node 20, in Node 24 and in a
 * browser.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { inBrowser, noBrowser } from './_browser.ts'
import { operator, startChain } from './_chain.ts'
import { install, nodeOf, root, run } from './_installed.ts'

const chain = await startChain()
const installed = await install()
after(() => Promise.all([chain[Symbol.asyncDispose](), installed[Symbol.asyncDispose]()]))

const { contract, codeHash, rpcUrl } = chain
await chain.store(7n, { owner: operator, timestamp: 5n, state: 4, flags: 0, reserved: 0 })
const bundle = await chain.bundle(7n)

/** A user's program in plain JavaScript; the same text runs in Node and in the browser. */
const program = `(async () => {
  const { attestationSigner, checkProofBundle, cleanText, isOwner, prove, recheck } = await import('@touchstone/verdict')
  const bundle = ${JSON.stringify(bundle)}
  const asking = { rpcUrl: ${JSON.stringify(rpcUrl)}, ...${JSON.stringify({ contract, codeHash })} }
  const offline = { ...${JSON.stringify({ contract, codeHash })}, blockHash: bundle.verdict.chainRef.block_hash }
  const forged = { ...bundle.verdict, state: 'MINTED', state_code: 1 }
  const digest = '0x11a9ab12c79c2f969d26fab22109489e657175cfe0de9497cafb52f86e9abb07'
  const signature = '0xf8d2d383505f96ce9b923e5c23feca788e9bde0d51f36b9c1267817cbe102718' +
    '76be64792d8f55b2ee6293216337308c1d9024851a1ed4078750356bec46569b1b'
  return {
    bundle: checkProofBundle(bundle, offline).ok,
    forgedBundle: checkProofBundle({ ...bundle, verdict: forged }, offline).ok,
    recheck: (await recheck(bundle.verdict, asking)).ok,
    forgedRecheck: (await recheck(forged, asking)).ok,
    prove: (await prove(bundle.verdict, asking)).ok,
    forgedProof: (await prove(forged, asking)).ok,
    unreachable: await recheck(bundle.verdict, { rpcUrl: 'http://127.0.0.1:1' }).catch((error) => error.code),
    owner: isOwner(bundle.verdict, '${operator}'),
    signer: attestationSigner(digest, signature),
    clean: cleanText('Jacket\\u202e \\u{e0041}\\u{1f468}\\u200d\\u{1f469}', { max: 200 }),
  }
})()`

const expected = {
  bundle: true,
  forgedBundle: false,
  recheck: true,
  forgedRecheck: false,
  prove: true,
  forgedProof: false,
  unreachable: 'RPC_UNAVAILABLE',
  owner: true,
  signer: operator,
  clean: 'Jacket \u{1f468}\u200d\u{1f469}',
}

describe('the packed library', () => {
  it('passes publint without a remark', async () => {
    const { stdout } = await run(join(root, 'node_modules/.bin/publint'), ['--strict', installed.tarball])
    assert.match(stdout, /All good/)
  })

  it('resolves to the right types for every kind of importer of ES modules', async () => {
    await run(join(root, 'node_modules/.bin/attw'), [installed.tarball, '--profile', 'esm-only', '--no-emoji'])
  })

  it('holds JavaScript, declarations, the sources of their maps, a licence and a README, and no test or machine path', () => {
    const directory = join(installed.directory, 'node_modules/@touchstone/verdict')
    const files = readdirSync(directory, { recursive: true, encoding: 'utf8' })
    for (const name of ['LICENSE', 'README.md', 'package.json', 'lib/index.js', 'lib/index.d.ts', 'src/index.ts']) {
      assert.ok(files.includes(name), name)
    }
    assert.deepEqual(
      files.filter((name) => name.includes('.test.')),
      [],
    )
    const textOf = (name: string): string => (/\.\w+$/.test(name) ? readFileSync(join(directory, name), 'utf8') : '')
    assert.deepEqual(
      files.filter(
        (name) => textOf(name).includes(root) || (name.startsWith('lib/') && textOf(name).includes("'node:")),
      ),
      [],
    )
    assert.equal(
      (JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as { private?: boolean }).private,
      undefined,
    )
  })

  for (const [module, moduleResolution] of [
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ] as const) {
    it(`type-checks in a strict program that resolves modules the way of ${moduleResolution}`, async () => {
      const file = await installed.write(
        'consumer.mts',
        `import { prove, type Report, type Verdict } from '@touchstone/verdict'
         export const check = (verdict: Verdict): Promise<Report> => prove(verdict, { rpcUrl: 'https://rpc.example' })
         // @ts-expect-error: the address of an endpoint is needed
         export const wrong = prove({}, {})`,
      )
      const options = ['--noEmit', '--strict', '--target', 'es2022', '--lib', 'es2022,dom', '--types', '']
      const resolution = ['--module', module, '--moduleResolution', moduleResolution]
      await run(join(root, 'node_modules/.bin/tsc'), [...options, ...resolution, file], { cwd: installed.directory })
    })
  }

  for (const major of [20, 24]) {
    const node = nodeOf(major)
    it(`runs in Node ${major}`, { skip: node === undefined && `there is no Node ${major} on the PATH` }, async () => {
      const file = await installed.write(`program-${major}.mjs`, `console.log(JSON.stringify(await ${program}))`)
      assert.deepEqual(JSON.parse((await run(node ?? 'node', [file])).stdout), expected)
    })
  }

  it('runs in Chromium', { skip: noBrowser }, async () => {
    assert.deepEqual(await inBrowser(join(installed.directory, 'node_modules'), program), expected)
  })
})

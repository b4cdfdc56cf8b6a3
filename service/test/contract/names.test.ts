/** Documents install packages by file or URL, never by name: the project owns no name on a registry (decisions/0030). */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { packageNames, tarballName } from '../../src/domain/release.ts'
import { filesBelow, root } from '../support/processes/deploy.ts'

/** Packages of others, of which a document may name one; a program is named with its version. */
const ofOthers = ['@foundry-rs/cast@1.7.1', 'pkcs11js', 'nfc-pcsc']

/** Commands of npm and its like that install or run a package, with their first argument that is no option. */
const installs =
  /\b(?:npx|npm (?:install|i|exec|x)|yarn (?:add|dlx)|pnpm (?:add|dlx)|bunx)((?: +-{1,2}[\w-]+)*) +([@\w$][^\s`'")]*)/g

const problemsOf = (text: string): string[] =>
  [...text.matchAll(installs)].flatMap(([command, , what = '']) =>
    ofOthers.includes(what.replace(/[.,;]$/, '')) || /\.tgz$|^\$\{/.test(what) ? [] : [command],
  )

describe('the names of packages', () => {
  it('are those of their manifests', () => {
    const nameIn = (folder: string) =>
      (JSON.parse(readFileSync(`${root}/${folder}/package.json`, 'utf8')) as { name: string }).name
    assert.equal(nameIn('verdict'), packageNames.library)
    assert.equal(nameIn('service'), packageNames.service)
  })

  it('are in no command of a document, a page or a message', () => {
    const files = [
      'README.md',
      'verdict/README.md',
      'contracts/README.md',
      'CONTRIBUTING.md',
      'SECURITY.md',
      'service/openapi.yaml',
    ]
    const read = [...files, ...['docs', 'deploy', 'service/src'].flatMap(filesBelow)].filter(
      (name) => !name.endsWith('.test.ts'),
    )
    assert.ok(read.length > 300)
    const problems = read.flatMap((name) =>
      problemsOf(readFileSync(`${root}/${name}`, 'utf8')).map((found) => `${name}: ${found}`),
    )
    assert.deepEqual(problems, [])
  })

  it('would be found there', () => {
    for (const command of [
      'npx touchstone verify 5',
      'npx --yes touchstone',
      'npm install @touchstone/verdict',
      'npm i -g touchstone',
    ])
      assert.equal(problemsOf(`Run ${command} now.`).length, 1, command)
    assert.deepEqual(problemsOf('`npm install` or npm install https://a.example/touchstone-verdict-0.1.0.tgz'), [])
  })

  it('of files have the version of this release', () => {
    for (const [file, name] of [
      ['docs/re-derive-it-yourself.md', 'cli'],
      ['docs/re-derive-it-yourself.md', 'library'],
      ['verdict/README.md', 'library'],
    ] as const)
      assert.ok(readFileSync(`${root}/${file}`, 'utf8').includes(`/packages/${tarballName(name)}`), file)
    for (const name of ['cli', 'library'] as const)
      assert.ok(readFileSync(`${root}/docs/deployment.md`, 'utf8').includes(tarballName(name)))
  })
})

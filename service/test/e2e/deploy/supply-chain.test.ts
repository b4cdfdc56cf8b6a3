/** The packages of the project: licences, hashes, install scripts. The files of a release, and what a stranger does with them. */
import assert from 'node:assert/strict'
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { packagesOf, problemsOf, readLock } from '../../../../scripts/packages.ts'
import { nodeOf } from '../../../../verdict/test/_installed.ts'
import { packageNames, tarballName } from '../../../src/domain/release.ts'
import { copyEmptyPglite } from '../../support/database/pglite.ts'
import { testFolder } from '../../support/folder.ts'
import { startDev } from '../../support/processes/cli.ts'
import { filesBelow, read, root } from '../../support/processes/deploy.ts'

describe('package-lock.json', () => {
  const lock = readLock()

  it('has no licence, source, install script or missing hash that is not expected', () => {
    assert.ok(packagesOf(lock).length > 300)
    assert.deepEqual(problemsOf(lock), [])
  })

  it('would be refused with one', () => {
    const [path = '', entry] = Object.entries(lock.packages).find(([name]) => name.endsWith('node_modules/viem')) ?? []
    const changed = (change: object) => problemsOf({ packages: { [path]: { ...entry, ...change } } })
    assert.deepEqual(changed({}), [])
    assert.match(changed({ license: 'AGPL-3.0-only' }).join(), /has the licence AGPL-3.0-only\./)
    assert.match(changed({ license: undefined }).join(), /has the licence none\./)
    assert.match(changed({ license: 'MPL-2.0', dev: true }).join(), /has the licence MPL-2.0\./)
    assert.match(changed({ integrity: undefined }).join(), /has no hash\./)
    assert.match(changed({ resolved: 'https://example.com/viem.tgz' }).join(), /does not come from the npm registry\./)
    assert.match(changed({ hasInstallScript: true }).join(), /has an install script\./)
  })

  it('is installed without scripts wherever it is deployed', () => {
    const files = [...filesBelow('deploy'), 'docs/deployment.md', 'docs/operators-handbook.md']
    const installs = files.flatMap((name) => read(name).match(/npm ci\b[^\n`)]*/g) ?? [])
    assert.ok(installs.length >= 4, installs.join('\n'))
    assert.deepEqual(
      installs.filter((line) => !line.includes('--ignore-scripts')),
      [],
    )
  })
})

const hasHistory = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root }).status === 0

describe('npm run release', { skip: hasHistory ? false : 'no git history' }, () => {
  const folder = testFolder()
  let out: string
  before(() => {
    out = join(folder, 'release')
    execFileSync(process.execPath, ['scripts/release.ts', '--dry-run', '--out', out], { cwd: root, timeout: 840_000 })
  })

  it('writes sources, packages, bill of materials and provenance, with the hash of each', () => {
    const sums = readFileSync(join(out, 'SHA256SUMS'), 'utf8').trim().split('\n')
    const names = sums.map((line) => line.slice(66))
    assert.deepEqual(
      names.map((name) => name.replace(/-\d.*?(?=\.(?:tar|tgz|cdx|prov))/, '')),
      [
        'touchstone.cdx.json',
        'touchstone.provenance.json',
        'touchstone.tar.gz',
        'touchstone-cli.tgz',
        'touchstone-service.tgz',
        'touchstone-verdict.tgz',
      ],
    )
    for (const line of sums)
      assert.equal(
        createHash('sha256')
          .update(readFileSync(join(out, line.slice(66))))
          .digest('hex'),
        line.slice(0, 64),
      )
    const json = (end: string) =>
      JSON.parse(readFileSync(join(out, names.find((name) => name.endsWith(end)) ?? ''), 'utf8'))
    const bill = json('.cdx.json') as { bomFormat: string; components: { name: string; hashes?: unknown[] }[] }
    assert.equal(bill.bomFormat, 'CycloneDX')
    const delivered = new Set(packagesOf(readLock()).flatMap(({ name, isTool }) => (isTool ? [] : [name])))
    assert.ok(bill.components.some(({ name, hashes }) => name === 'viem' && hashes?.length === 1))
    assert.ok(
      bill.components.every(({ name }) => delivered.has(name) || ['bench', 'service', 'verdict'].includes(name)),
    )
    const { subject, predicate } = json('.provenance.json') as {
      subject: { name: string; digest: { sha256: string } }[]
      predicate: { buildDefinition: { resolvedDependencies: { digest: { gitCommit?: string } }[] } }
    }
    assert.ok(subject.every(({ name, digest }) => sums.includes(`${digest.sha256}  ${name}`)))
    const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()
    assert.equal(predicate.buildDefinition.resolvedDependencies[0]?.digest.gitCommit, commit)
  })

  describe('with its packages alone', () => {
    let service: Awaited<ReturnType<typeof startDev>>
    let installed: string
    before(async () => {
      installed = installService(join(out, tarballName('service')), join(folder, 'operator'))
      const data = join(folder, 'data')
      await copyEmptyPglite(join(data, 'store'))
      service = await startDev({ DATA_DIR: data }, join(installed, 'service/src/cli.js'))
    })
    after(() => service?.stop())

    it('starts a service whose pages, playground, documents and recheck in the browser are there', async () => {
      const { verification, graphql } = service.urls
      const home = await (await fetch(verification)).text()
      const recheck = `${/\/assets\/\w+\//.exec(home)?.[0]}verdict/check/recheck.js`
      for (const url of [
        '/docs/quick-start',
        '/docs/api/try',
        '/docs/search?q=tap',
        '/openapi.json',
        '/llms.txt',
        recheck,
      ].map((path) => verification + path))
        assert.equal((await fetch(url)).status, 200, url)
      const reference = await (await fetch(`${verification}/docs/api/try`)).text()
      const [, script = ''] = /src="([^"]+swagger-ui\.js)"/.exec(reference) ?? []
      assert.equal((await fetch(verification + script)).status, 200, script)
      assert.equal((await fetch(`${graphql}/playground`)).status, 200)
    })

    it('offers the packages for clients, byte for byte those of the release', async () => {
      const offered = async (name: string) => fetch(`${service.urls.verification}/packages/${name}`)
      for (const name of [tarballName('cli'), tarballName('library')]) {
        const response = await offered(name)
        assert.equal(response.headers.get('content-type'), 'application/gzip')
        assert.deepEqual(Buffer.from(await response.arrayBuffer()), readFileSync(join(out, name)))
      }
      const sums = (await (await offered('SHA256SUMS')).text()).trim().split('\n')
      const all = readFileSync(join(out, 'SHA256SUMS'), 'utf8').split('\n')
      assert.equal(sums.length, 2)
      assert.ok(sums.every((line) => all.includes(line)))
      assert.equal((await offered('touchstone-service-0.1.0.tgz')).status, 404)
    })

    for (const major of [20, 24]) {
      const node = nodeOf(major)
      const skip = node === undefined ? `there is no Node ${major} on the PATH` : false
      it(`verifies, proves and buys under Node ${major}, by the command of the banner`, { skip }, async () => {
        const { gateway, rpc } = service.urls
        const command = /npx --yes (\S+) (verify \S+ --rpc \S+ --deployment local)/.exec(service.said())
        const PATH = [dirname(node ?? ''), '/usr/local/bin', '/usr/bin', '/bin'].join(delimiter)
        const env = { HOME: folder, PATH, npm_config_cache: join(folder, `cache-${major}`) }
        const [cwd, url = ''] = [mkdtempSync(join(folder, 'stranger-')), command?.[1]]
        const run = promisify(execFile)
        const added = await run('npm', ['install', '--no-audit', '--no-fund', url], { cwd, env })
        assert.match(added.stdout, /added 1 package/)
        assert.doesNotMatch(added.stderr, /EBADENGINE|deprecated/)
        const touchstone = async (...args: string[]) =>
          (await run('npx', ['--no', 'touchstone', ...args], { cwd, env })).stdout
        assert.match(await touchstone(...(command?.[2] ?? '').split(' ')), /Every field agrees with the chain\./)
        const base = service.urls.verification
        const proved = await touchstone('prove', '5', '--base-url', base, '--rpc', rpc, '--deployment', 'local')
        assert.match(proved, /ok +proof\S*[^]*Every field agrees/)
        assert.match(await touchstone('pay', '5', '--gateway', gateway), /Both signatures are valid/)
      })
    }
  })

  it('has programs that say what an old Node lacks', async () => {
    const [old, cli] = [join(folder, 'old'), join(folder, 'cli')]
    for (const path of [old, cli]) mkdirSync(path)
    writeFileSync(join(old, 'node'), '#!/bin/sh\necho v18.20.8\n', { mode: 0o755 })
    execFileSync('tar', ['-xzf', join(out, tarballName('cli')), '-C', cli])
    // A preload stands in for the version of an old Node.
    const preload = `data:text/javascript,Object.defineProperty(process,'versions',{value:{node:'18.20.8'}})`
    const client = spawnSync(process.execPath, ['--import', preload, join(cli, 'package/bin/touchstone.cjs')], {
      encoding: 'utf8',
    })
    assert.match(client.stderr, /^touchstone: This needs Node 20\.19 or newer/)
    assert.equal(client.status, 2)
    const alone = join(folder, 'alone')
    mkdirSync(alone)
    execFileSync('tar', ['-xzf', join(out, tarballName('service')), '-C', alone])
    const service = spawnSync(join(alone, 'package/service/bin/touchstone'), ['serve'], {
      encoding: 'utf8',
      env: { PATH: `${old}:/usr/bin:/bin` },
    })
    assert.match(service.stderr, /^touchstone: The service needs Node 24 or newer; the machine has v18\.20\.8\./)
    assert.equal(service.status, 2)
  })
})

/** Unpacks the service, and links the dependencies of its manifest: what npm install does, without a registry. Returns its folder. */
function installService(tarball: string, folder: string): string {
  const modules = join(folder, 'node_modules')
  const target = join(modules, packageNames.service)
  mkdirSync(target, { recursive: true })
  execFileSync('tar', ['-xzf', tarball, '-C', target, '--strip-components=1'])
  const manifest = JSON.parse(readFileSync(join(target, 'package.json'), 'utf8')) as { dependencies: object }
  for (const name of Object.keys(manifest.dependencies)) {
    const [own, shared] = [join(root, 'service/node_modules', name), join(root, 'node_modules', name)]
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    symlinkSync(existsSync(own) ? own : shared, join(modules, name))
  }
  return target
}

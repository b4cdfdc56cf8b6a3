/** The packages of the project: licences, hashes, install scripts; and the files of a release. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { packagesOf, problemsOf, readLock } from '../../../../scripts/packages.ts'
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
  it('writes sources, library, bill of materials and provenance, with the hash of each', () => {
    const out = mkdtempSync(join(tmpdir(), 'touchstone-release-'))
    try {
      execFileSync(process.execPath, ['scripts/release.ts', '--draft', '--out', out], { cwd: root, timeout: 300_000 })
      const sums = readFileSync(join(out, 'SHA256SUMS'), 'utf8').trim().split('\n')
      const names = sums.map((line) => line.slice(66))
      assert.deepEqual(
        names.map((name) => name.replace(/-\d.*?(?=\.(?:tar|tgz|cdx|prov))/, '')),
        ['touchstone.cdx.json', 'touchstone.provenance.json', 'touchstone.tar.gz', 'touchstone-verdict.tgz'],
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
    } finally {
      rmSync(out, { recursive: true })
    }
  })
})

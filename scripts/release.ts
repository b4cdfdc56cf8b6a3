/**
 * `npm run release [-- --out <folder>] [--dry-run]` writes the files of a release. They are sources, the packages of the client library, of
 * the commands for clients and of the service, a bill of materials (CycloneDX), the provenance of each (SLSA v1, an in-toto statement) and
 * their SHA-256. Sign SHA256SUMS: CONTRIBUTING.md says how.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readOptions } from './options.ts'

const root = fileURLToPath(new URL('../', import.meta.url))
const { values } = readOptions({ options: { out: { type: 'string' }, 'dry-run': { type: 'boolean', default: false } } })
const out = resolve(values.out ?? join(root, 'dist', 'release'))
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
const run = (program: string, ...args: readonly string[]) =>
  execFileSync(program, args, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }).trim()

if (!values['dry-run'] && run('git', 'status', '--porcelain') !== '')
  throw new Error('There are changes that are not committed: a release is of a commit. --dry-run tries it out.')

rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
const commit = run('git', 'rev-parse', 'HEAD')
run(
  'git',
  'archive',
  '--format=tar.gz',
  `--prefix=touchstone-${version}/`,
  '-o',
  join(out, `touchstone-${version}.tar.gz`),
  commit,
)
run(process.execPath, 'scripts/pack/main.ts', '--out', out)
writeFileSync(join(out, `touchstone-${version}.cdx.json`), `${JSON.stringify(billOfMaterials(), null, 2)}\n`)
const subjects = readdirSync(out).toSorted()
writeFileSync(join(out, `touchstone-${version}.provenance.json`), `${JSON.stringify(provenance(subjects), null, 2)}\n`)
const sums = readdirSync(out).toSorted()
writeFileSync(join(out, 'SHA256SUMS'), sums.map((name) => `${sha256(join(out, name))}  ${name}\n`).join(''))
console.log(`${sums.length} files of ${commit} in ${out}`)

/** Returns the packages that are delivered, as npm reads them from the lock file. The project has the name of its folder. */
function billOfMaterials(): unknown {
  const text = run('npm', 'sbom', '--package-lock-only', '--omit=dev', '--sbom-format=cyclonedx')
  const bill = JSON.parse(text) as { metadata: { component: { name: string } } }
  bill.metadata.component.name = 'touchstone'
  return bill
}

function provenance(names: readonly string[]): unknown {
  const lock = { name: 'package-lock.json', digest: { sha256: sha256(join(root, 'package-lock.json')) } }
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: names.map((name) => ({ name, digest: { sha256: sha256(join(out, name)) } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:touchstone:release:1',
        externalParameters: { version, dryRun: values['dry-run'] },
        internalParameters: { node: process.version, npm: run('npm', '--version') },
        resolvedDependencies: [{ name: 'touchstone', digest: { gitCommit: commit } }, lock],
      },
      runDetails: {
        builder: { id: 'urn:touchstone:scripts/release.ts' },
        metadata: { finishedOn: new Date().toISOString() },
      },
    },
  }
}

function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

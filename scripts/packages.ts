/**
 * `npm run packages`: lists the packages of package-lock.json by licence. It fails for a licence, a source or an install script that is
 * not expected here, and for an entry without the hash of its content.
 */
import { readFileSync } from 'node:fs'
import { readOptions } from './options.ts'

readOptions({})

type Entry = Readonly<{
  version?: string
  license?: string
  dev?: boolean
  link?: boolean
  resolved?: string
  integrity?: string
  hasInstallScript?: boolean
}>
type Lock = Readonly<{ packages: Readonly<Record<string, Entry>> }>

/** Licences of what is delivered: all permissive. */
const permissive = new Set(['MIT', 'Apache-2.0', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'BlueOak-1.0.0'])
const choices = new Set([
  'MIT OR Apache-2.0',
  '(MIT OR Apache-2.0)',
  '(MIT OR CC0-1.0)',
  '(MIT AND Zlib)',
  '(BSD-3-Clause OR GPL-2.0)',
])

/** Other licences of packages that only tests and tools use, which are not delivered. */
const ofTools: Readonly<Record<string, string>> = {
  '@digitalbazaar/credentials-context': 'SEE LICENSE IN LICENSE.md', // W3C Software and Document License
  '@ethereumjs/mpt': 'MPL-2.0',
  '@ethereumjs/rlp': 'MPL-2.0',
  '@ethereumjs/util': 'MPL-2.0',
  'axe-core': 'MPL-2.0',
  memorystream: 'none', // MIT in its LICENSE file
}

/** Packages of sharp for each platform: a shared library under the LGPL, loaded unchanged (NOTICE). No other package may have this licence. */
const ofSharp = /^@img\/sharp-/
const sharedLibrary = 'LGPL-3.0-or-later'

/** Packages with an install script. `npm ci --ignore-scripts` runs none of them, and a delivered service needs none. */
const withScripts = new Set(['node', 'esbuild', '@foundry-rs/anvil', '@foundry-rs/forge'])

/**
 * Binaries of Foundry for other platforms. The registry that made the lock file lacks them, and npm checks them on those platforms by TLS
 * only.
 */
const withoutHash = new Set(
  ['anvil-darwin-amd64', 'anvil-darwin-arm64', 'anvil-linux-arm64', 'anvil-win32-amd64'].concat([
    'forge-darwin-amd64',
    'forge-linux-arm64',
  ]),
)

type Package = Readonly<{ name: string; version: string; license: string; isTool: boolean; entry: Entry }>

export function packagesOf({ packages }: Lock): readonly Package[] {
  return Object.entries(packages).flatMap(([path, entry]) => {
    const at = path.lastIndexOf('node_modules/')
    if (at < 0 || entry.link === true) return []
    const { version = '', license = 'none', dev = false } = entry
    return [{ name: path.slice(at + 'node_modules/'.length), version, license, isTool: dev, entry }]
  })
}

/** Returns one sentence for each thing that is not expected. */
export function problemsOf(lock: Lock): readonly string[] {
  return packagesOf(lock).flatMap(({ name, version, license, isTool, entry }) => {
    const isShared =
      ofSharp.test(name) && license.split(' AND ').every((part) => part === sharedLibrary || permissive.has(part))
    const isExpected =
      permissive.has(license) || choices.has(license) || isShared || (isTool && ofTools[name] === license)
    const isHashed =
      entry.integrity?.startsWith('sha512-') === true || withoutHash.has(name.replace('@foundry-rs/', ''))
    const isFromRegistry = entry.resolved === undefined || entry.resolved.startsWith('https://registry.npmjs.org/')
    return [
      ...(isExpected ? [] : [`${name} ${version} has the licence ${license}.`]),
      ...(isHashed ? [] : [`${name} ${version} has no hash.`]),
      ...(isFromRegistry ? [] : [`${name} ${version} does not come from the npm registry.`]),
      ...(entry.hasInstallScript !== true || withScripts.has(name)
        ? []
        : [`${name} ${version} has an install script.`]),
    ]
  })
}

export function readLock(): Lock {
  return JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8')) as Lock
}

if (import.meta.main) {
  const lock = readLock()
  for (const [label, isTool] of [
    ['delivered', false],
    ['tests and tools', true],
  ] as const) {
    const some = packagesOf(lock).filter((one) => one.isTool === isTool)
    console.log(`${label}: ${some.length} packages`)
    for (const [license, list] of [...Map.groupBy(some, (one) => one.license)].toSorted(([a], [b]) =>
      a < b ? -1 : 1,
    )) {
      console.log(`  ${license} (${list.length})`)
      console.log(
        `    ${list
          .map(({ name, version }) => `${name}@${version}`)
          .toSorted()
          .join(', ')}`,
      )
    }
  }
  const problems = problemsOf(lock)
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length === 0 ? 0 : 1
}

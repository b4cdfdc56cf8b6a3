/**
 * The package of the commands for clients: one program without dependencies. So the hash of its tarball is the hash of everything that
 * runs. Its bundle holds only packages of the list below.
 */
import { buildSync, type Metafile } from 'esbuild'
import { readdirSync, readFileSync, writeFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { packageNames } from '../../service/src/domain/release.ts'
import { programVersion } from '../../service/src/lib/version.ts'
import { engines, packed, root } from './tarball.ts'

/** Packages whose code the bundle may hold. */
const expected = new Set([
  '@noble/curves',
  '@noble/hashes',
  '@noble/ciphers',
  '@scure/base',
  '@scure/bip32',
  '@scure/bip39',
  '@x402/core',
  '@x402/evm',
  'abitype',
  'commander',
  'isows',
  'ox',
  'viem',
  'ws',
  'zod',
])

const launcher = `#!/usr/bin/env node
// Plain enough for an old Node to read, so that it can say what it lacks.
var version = process.versions.node.split('.').map(Number)
if (version[0] < 20 || (version[0] === 20 && version[1] < 19)) {
  process.stderr.write('touchstone: This needs Node 20.19 or newer, and runs in ' + process.version + '. Install a newer one.\\n')
  process.exitCode = 2
} else {
  import('../lib/main.js')
}
`

const readme = `# ${packageNames.cli}

Checks what a Touchstone service says about a physical product against the chain, and buys signed proofs.

    touchstone verify https://verify.example/api/asset/5 --rpc https://rpc.example --contract 0x…
    touchstone prove 5 --base-url https://verify.example --rpc https://rpc.example --contract 0x…
    touchstone pay 5 --gateway https://pay.example

Exit code 0, and only 0, is a yes. \`touchstone <command> --help\` explains the rest.
`

const manifest = {
  name: packageNames.cli,
  version: programVersion,
  description: 'Verifies, proves and buys what a Touchstone service says about a physical product.',
  license: 'Apache-2.0',
  type: 'module',
  bin: { touchstone: 'bin/touchstone.cjs' },
  files: ['bin', 'lib', 'THIRD-PARTY-LICENSES'],
  engines,
}

export function packCli(out: string): string {
  return packed(out, manifest, (folder) => {
    const { metafile } = buildSync({
      absWorkingDir: root,
      entryPoints: ['service/src/cli/client/main.ts'],
      outdir: join(folder, 'lib'),
      bundle: true,
      splitting: true,
      platform: 'node',
      format: 'esm',
      target: 'node20.19',
      legalComments: 'none',
      metafile: true,
      logLevel: 'warning',
      // Packages of CommonJS ask for built-in modules.
      banner: {
        js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
      },
    })
    mkdirSync(join(folder, 'bin'))
    writeFileSync(join(folder, 'bin/touchstone.cjs'), launcher, { mode: 0o755 })
    writeFileSync(join(folder, 'README.md'), readme)
    writeFileSync(join(folder, 'THIRD-PARTY-LICENSES'), licences(bundled(metafile)))
  })
}

/** Returns the files of which something is in the bundle. */
function bundled({ outputs }: Metafile): readonly string[] {
  return Object.values(outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
  )
}

/** Returns the licences of the packages in the bundle. Throws for a package that is not expected. */
function licences(inputs: readonly string[]): string {
  const folders = new Set(inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []))
  return [...folders]
    .toSorted()
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as Record<
        string,
        string
      >
      if (name === undefined || !expected.has(name))
        throw new Error(`The package of the commands would hold ${name}, which is not expected.`)
      const file = readdirSync(join(root, folder)).find((entry) => /^licen[cs]e/i.test(entry))
      return `${name} ${version} (${license})\n\n${file === undefined ? '' : readFileSync(join(root, folder, file), 'utf8').trim()}\n`
    })
    .join('\n---\n\n')
}

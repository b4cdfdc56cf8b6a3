/**
 * `node scripts/pack/main.ts [library] [cli] [service] [--out <folder>] [--if-older]`: makes the packages of a release, all by default, in
 * `dist/packages`, where the service finds those that it offers. Prints the path of each. With `--if-older` it makes nothing where they are
 * newer than the sources, or where the packages for development are not installed.
 */
import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { readOptions } from '../options.ts'
import { tarballName } from '../../service/src/domain/release.ts'
import { root } from './tarball.ts'

const options = { out: { type: 'string' }, 'if-older': { type: 'boolean', default: false } } as const
const { values, positionals } = readOptions({ options, allowPositionals: true })
const out = resolve(values.out ?? join(root, 'dist/packages'))
const all = ['library', 'cli', 'service'] as const
const wanted = positionals.length === 0 ? all : all.filter((name) => positionals.includes(name))
const pathOf = (name: (typeof all)[number]) => join(out, tarballName(name))

if (!values['if-older'] || isOlder()) {
  mkdirSync(out, { recursive: true })
  for (const name of wanted) console.log(await pack(name))
}

async function pack(name: (typeof all)[number]): Promise<string> {
  if (name === 'library') return (await import('./library.ts')).packLibrary(out)
  if (name === 'cli') return (await import('./cli.ts')).packCli(out)
  return (await import('./service.ts')).packService(out, [pathOf('library'), pathOf('cli')])
}

function isOlder(): boolean {
  if (!existsSync(join(root, 'node_modules/esbuild'))) return false
  const timeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
  const sources = ['verdict', 'service/src', 'scripts/pack'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => !file.includes('node_modules'))
      .map((file) => timeOf(join(root, folder, file))),
  )
  return (
    Math.min(...wanted.map((name) => timeOf(pathOf(name)))) <
    Math.max(...sources, timeOf(join(root, 'package-lock.json')))
  )
}

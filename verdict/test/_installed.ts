/** The packed client library, unpacked where a stranger's program would have it. */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export const run = promisify(execFile)
export const root = fileURLToPath(new URL('../..', import.meta.url))

export type Installed = AsyncDisposable & {
  /** The tarball that would be published. */
  tarball: string
  /** A directory with the package in node_modules. */
  directory: string
  /** Writes a file into the directory and gives back its path. */
  write: (name: string, text: string) => Promise<string>
}

/** Packs, unpacks, and links the two dependencies: what npm install does, without a registry. */
export async function install(): Promise<Installed> {
  const directory = await mkdtemp(join(tmpdir(), 'verdict-'))
  const { stdout } = await run(process.execPath, ['scripts/pack/main.ts', 'library', '--out', directory], { cwd: root })
  const tarball = stdout.trim().split('\n').at(-1) ?? ''
  const modules = join(directory, 'node_modules')
  const target = join(modules, '@touchstone/verdict')
  await mkdir(target, { recursive: true })
  await run('tar', ['-xzf', tarball, '-C', target, '--strip-components=1'])
  await symlink(join(root, 'node_modules/@noble'), join(modules, '@noble'))
  const write = async (name: string, text: string): Promise<string> => {
    const file = join(directory, name)
    await writeFile(file, text)
    return file
  }
  return { tarball, directory, write, [Symbol.asyncDispose]: () => rm(directory, { recursive: true }) }
}

/** Returns the first `node` of a major version in the usual places. */
export function nodeOf(major: number): string | undefined {
  const directories = ['/usr/local/bin', '/usr/bin', ...(process.env['PATH'] ?? '').split(delimiter)]
  const binaries = [process.execPath, ...directories.map((directory) => join(directory, 'node'))].filter(existsSync)
  return binaries.find((binary) => execFileSync(binary, ['--version'], { encoding: 'utf8' }).startsWith(`v${major}.`))
}

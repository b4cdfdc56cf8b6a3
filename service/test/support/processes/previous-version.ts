/** The program as it was before the newest migration, from the history of this repository, for tests of an upgrade. */
import { execFile } from 'node:child_process'
import { mkdir, readdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { readMigrations } from '../../../src/db/migrate.ts'
import { testFolder } from '../folder.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const git = async (...args: string[]) =>
  (await promisify(execFile)('git', ['-C', root, ...args], { timeout: 240_000, maxBuffer: 1 << 20 })).stdout.trim()

/** The OpenAPI description is JSON in older versions. */
const needed = 'service/openapi.*'

/**
 * A commit, or why there is none. The history is not here, it begins with the file, or the version before lacks the compared hosts.
 * `isExcuse` is false where there should have been one.
 */
type Found = { commit: string } | { reason: string; isExcuse: boolean }

export function commitBeforeNewestMigration(): Promise<Found> {
  const name = readMigrations().at(-1)?.name
  // The present place of the folder, and the former one.
  return commitBefore(`service/src/db/migrations/${name}`, `service/src/store/migrations/${name}`)
}

/** Finds the commit before the one that added a file; `paths` are its places. */
export async function commitBefore(...paths: readonly string[]): Promise<Found> {
  const [name] = paths
  try {
    const added = (await git('log', '--diff-filter=A', '--format=%H', '--', ...paths)).split('\n').at(-1)
    // Not committed yet: what is committed is the version before.
    const commit = await git('rev-parse', '--verify', '--quiet', added === '' ? 'HEAD' : `${added}^1`)
    if (/^service\/openapi\./m.test(await git('ls-tree', '--name-only', commit, '--', 'service/'))) return { commit }
    return { reason: `the commit before ${name} has no ${needed}`, isExcuse: true }
  } catch {
    const isShallow = (await git('rev-parse', '--is-shallow-repository').catch(() => 'true')) !== 'false'
    return { reason: `no commit before ${name} in this clone; fetch more of its history`, isExcuse: isShallow }
  }
}

/**
 * Its files in a folder of their own, with the packages of this version but with its own workspaces. A package that only the version before
 * uses, such as qrcode-generator, stays among the devDependencies of the root as long.
 */
export async function extractVersion(commit: string): Promise<{ cli: string }> {
  const folder = testFolder()
  const archive = join(folder, 'version.tar')
  await git(
    'archive',
    '--output',
    archive,
    commit,
    'service/src',
    'service/package.json',
    needed,
    'verdict',
    'contracts',
    'docs',
    'package.json',
  )
  await promisify(execFile)('tar', ['-xf', archive, '-C', folder], { timeout: 240_000 })
  await linkPackages(join(root, 'node_modules'), join(folder, 'node_modules'), ['@touchstone', '.cache'])
  await linkPackages(join(root, 'service/node_modules'), join(folder, 'service/node_modules'), [])
  await mkdir(join(folder, 'node_modules/@touchstone'))
  await symlink(join(folder, 'verdict'), join(folder, 'node_modules/@touchstone/verdict'))
  return { cli: join(folder, 'service/src/cli.ts') }
}

async function linkPackages(from: string, to: string, without: readonly string[]): Promise<void> {
  await mkdir(to, { recursive: true })
  const names = await readdir(from).catch(() => []) // there is none where every package is at the top
  for (const name of names) if (!without.includes(name)) await symlink(join(from, name), join(to, name))
}

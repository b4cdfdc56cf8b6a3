/** Packages of stock clients for tests: installed once from the lockfile of their fixture, beside the compile cache. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const fixtures = fileURLToPath(new URL('../fixtures/', import.meta.url))
const cache = fileURLToPath(new URL('../../../node_modules/.cache/', import.meta.url))

/** Returns the folder of an installed copy; null where it cannot be installed, unless `REQUIRE_SERVICES=1`. */
export async function installFixture(name: string): Promise<string | null> {
  const fixture = join(fixtures, name)
  const names = (await readdir(fixture, { withFileTypes: true }))
    .filter((file) => file.isFile())
    .map((file) => file.name)
  const files = await Promise.all(names.toSorted().map((file) => readFile(join(fixture, file))))
  const version = createHash('sha256').update(Buffer.concat(files)).digest('hex').slice(0, 12)
  const folder = join(cache, `${name}-${version}`)
  if (await stat(folder).catch(() => undefined)) return folder
  await mkdir(cache, { recursive: true })
  const draft = await mkdtemp(join(cache, `${name}-draft-`))
  try {
    await cp(fixture, draft, { recursive: true, filter: (path) => !path.includes('node_modules') })
    await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: draft, timeout: 840_000 })
    await rename(draft, folder).catch(() => {}) // another run was faster
    return folder
  } catch (error) {
    if (process.env['REQUIRE_SERVICES'] === '1') throw error
    return null
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

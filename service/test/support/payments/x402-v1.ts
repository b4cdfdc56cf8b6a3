/** x402-fetch 1.2.0 in a package of its own: installed once from its lockfile into the system's folder for temporary files. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const fixture = fileURLToPath(new URL('../../fixtures/x402-v1/', import.meta.url))

/** The folder of the installed buyer, or one sentence why there is none. */
export async function installedBuyer(): Promise<{ folder: string } | { missing: string }> {
  const lock = await readFile(join(fixture, 'package-lock.json'))
  const version = createHash('sha256').update(lock).digest('hex').slice(0, 12)
  const folder = join(tmpdir(), `touchstone-x402-v1-${version}`)
  if (await stat(folder).catch(() => undefined)) return { folder }
  const draft = await mkdtemp(join(tmpdir(), 'touchstone-x402-v1-draft-'))
  try {
    await cp(fixture, draft, { recursive: true })
    await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: draft, timeout: 240_000 })
    await rename(draft, folder).catch(() => {}) // another run was faster
    return { folder }
  } catch (error) {
    if (process.env['REQUIRE_SERVICES'] === '1') throw error
    return { missing: 'x402-fetch 1.2.0 cannot be installed here' }
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

export type Bought = { status: number; body: Record<string, unknown>; receipt: Record<string, unknown> }

export async function buyWithV1(folder: string, url: string, key: string, assetId: bigint): Promise<Bought> {
  const { stdout } = await run(process.execPath, [join(folder, 'buyer.js'), url, key, String(assetId)], {
    cwd: folder,
    timeout: 300_000,
  })
  return JSON.parse(stdout) as Bought
}

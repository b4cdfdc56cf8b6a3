/** The secrets of a demonstration, made once and kept in its data folder (mode 0600): a production service gets its own by the environment. */
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Hex texts for TAG_KEK and TAG_PEPPER. */
export type DemoSecrets = { readonly kek: string; readonly pepper: string }

export async function readOrCreateDemoSecrets(dataDir: string): Promise<DemoSecrets> {
  const folder = join(dataDir, 'keys')
  const path = join(folder, 'demo.json')
  const known = await readFile(path, 'utf8').catch(() => null)
  if (known !== null) return JSON.parse(known) as DemoSecrets
  const secrets = { kek: randomBytes(32).toString('hex'), pepper: randomBytes(32).toString('hex') }
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await writeFile(path, JSON.stringify(secrets), { mode: 0o600, flag: 'wx' })
  return secrets
}

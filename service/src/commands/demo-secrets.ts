/** The secrets of a demonstration, made once and kept in its data folder (mode 0600): a production service gets its own by the environment. */
import { randomBytes } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writePrivateFile } from '../tap/sealed-file.ts'

/** Hex texts for TAG_KEK and TAG_PEPPER. */
export type DemoSecrets = { readonly kek: string; readonly pepper: string }

export async function readOrCreateDemoSecrets(dataDir: string): Promise<DemoSecrets> {
  const known = await readDemoSecrets(dataDir)
  if (known !== null) return known
  const secrets = { kek: randomBytes(32).toString('hex'), pepper: randomBytes(32).toString('hex') }
  await mkdir(join(dataDir, 'keys'), { recursive: true, mode: 0o700 })
  await writePrivateFile(fileOf(dataDir), JSON.stringify(secrets))
  return secrets
}

/** Null where no demonstration was ever started. A damaged file throws one sentence: new secrets would orphan every tag. */
export async function readDemoSecrets(dataDir: string): Promise<DemoSecrets | null> {
  const path = fileOf(dataDir)
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw new Error(`${path} cannot be read (${error.code ?? 'unknown reason'}).`)
  })
  if (text === null) return null
  const secrets = secretsOf(text)
  if (secrets === null) throw new Error(`${path} is damaged: restore it, or move the data folder away to start anew.`)
  return secrets
}

function secretsOf(text: string): DemoSecrets | null {
  try {
    const { kek, pepper } = JSON.parse(text) as Record<string, unknown>
    const isKey = (value: unknown) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)
    return isKey(kek) && isKey(pepper) ? ({ kek, pepper } as DemoSecrets) : null
  } catch {
    return null
  }
}

function fileOf(dataDir: string): string {
  return join(dataDir, 'keys', 'demo.json')
}

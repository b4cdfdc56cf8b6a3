/** The secrets of a demonstration, made once and stored in its data folder (mode 0600). A production service takes its own from the environment. */
import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseJsonObject } from '../../lib/json.ts'
import { makeFolder } from '../../lib/private-folder.ts'
import { writePrivateFile } from '../../lib/sealed/file.ts'

/** Hex texts for TAG_KEK, STATION_KEK and TAG_PEPPER. */
type DemoSecrets = { readonly kek: string; readonly stationKek: string; readonly pepper: string }

export async function readOrCreateDemoSecrets(dataDir: string): Promise<DemoSecrets> {
  const known = await readDemoSecrets(dataDir)
  if (known !== null) return known
  const [kek = '', stationKek = '', pepper = ''] = [1, 2, 3].map(() => randomBytes(32).toString('hex'))
  const secrets = { kek, stationKek, pepper }
  await makeFolder(join(dataDir, 'keys'))
  await writePrivateFile(fileOf(dataDir), JSON.stringify(secrets))
  return secrets
}

/** Reads the secrets, or returns null when no demonstration was started. Throws for a damaged file, because new secrets would orphan every tag. */
export async function readDemoSecrets(dataDir: string): Promise<DemoSecrets | null> {
  const path = fileOf(dataDir)
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null
    throw new Error(`${path} cannot be read (${error.code ?? 'unknown reason'}).`)
  })
  if (text === null) return null
  const secrets = parseSecrets(text)
  if (secrets === null) throw new Error(`${path} is damaged: restore it, or move the data folder away to start again.`)
  return secrets
}

export function isOfDemonstration(dataDir: string): boolean {
  return existsSync(fileOf(dataDir))
}

function parseSecrets(text: string): DemoSecrets | null {
  const { kek, pepper, stationKek = stationKekOf(kek) } = parseJsonObject(text) ?? {}
  const isKey = (value: unknown) => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)
  return isKey(kek) && isKey(stationKek) && isKey(pepper) ? ({ kek, stationKek, pepper } as DemoSecrets) : null
}

/** A data folder of an earlier version has no secret of the station: it follows from the other one. */
function stationKekOf(kek: unknown): string {
  return createHash('sha256')
    .update(`touchstone station ${String(kek)}`)
    .digest('hex')
}

function fileOf(dataDir: string): string {
  return join(dataDir, 'keys', 'demo.json')
}

/** Headers by which a remote facilitator identifies this operator: a file with a JSON object of names and values. */
import { parseJsonObject } from '../../lib/json.ts'
import { readPrivateFile } from '../../lib/private-folder.ts'

/** Header names and values; the values are secret. */
export type SecretHeaders = Readonly<Record<string, string>>

const maxBytes = 16 * 1024

/** Reads the file. Throws an Error of one sentence, without any value, for one that is not private or no such object. */
export async function readSecretHeaders(path: string): Promise<SecretHeaders> {
  const text = await readPrivateFile(path, { maxBytes })
  const found = text === null ? null : parseJsonObject(text)
  if (found === null || !Object.entries(found).every(isHeader))
    throw new Error(`${path} is not a JSON object of header names and values.`)
  return found as SecretHeaders
}

function isHeader([name, value]: readonly [string, unknown]): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/.test(name) && typeof value === 'string' && /^[\t\x20-\x7e]*$/.test(value)
}

/** Headers by which a remote facilitator knows this operator: a file with a JSON object of names and values. */
import { open } from 'node:fs/promises'
import { parseJsonObject } from '../../lib/json.ts'

/** Header names and values; the values are secret. */
export type SecretHeaders = Readonly<Record<string, string>>

const maxBytes = 16 * 1024
/** Write access of the group, and all access of others. Secrets of Kubernetes are readable by a group. */
const forStrangers = 0o027

/** Reads the file. Throws an Error of one sentence, without any value, for one that is not private or no such object. */
export async function readSecretHeaders(path: string): Promise<SecretHeaders> {
  const file = await open(path).catch(({ code }: NodeJS.ErrnoException) => {
    throw new Error(`${path} cannot be read (${code ?? 'unknown reason'}).`)
  })
  try {
    const { mode, size } = await file.stat()
    if ((mode & forStrangers) !== 0) throw new Error(`${path} is open to other users: chmod 600 closes it.`)
    const found = size > maxBytes ? null : parseJsonObject(await file.readFile('utf8'))
    if (found === null || !Object.entries(found).every(isHeader))
      throw new Error(`${path} is not a JSON object of header names and values.`)
    return found as SecretHeaders
  } finally {
    await file.close()
  }
}

function isHeader([name, value]: readonly [string, unknown]): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/.test(name) && typeof value === 'string' && /^[\t\x20-\x7e]*$/.test(value)
}

/** JSON files that a command is given by name. */
import { readFile } from 'node:fs/promises'
import { parseUniqueJson } from '../../lib/json.ts'
import { CommandError } from './output.ts'

const maxLength = 100_000

/** Reads a JSON file of at most 100,000 characters. Throws a CommandError for another, or one that names a member twice. */
export async function readJsonFile(path: string): Promise<unknown> {
  const text = await readFile(path, 'utf8').catch(() => {
    throw new CommandError(`There is no file ${path}.`)
  })
  if (text.length > maxLength) throw new CommandError(`${path} has more than ${maxLength} characters.`)
  const value = parseUniqueJson(text)
  if (value === undefined) throw new CommandError(`${path} is not JSON, or names a member twice.`)
  return value
}

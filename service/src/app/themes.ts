/**
 * The operator's brand themes, read once at the start. A folder of `<id>.json` files, each with its mark `<id>.svg` beside it, and a
 * typeface `<id>.woff2` where it has one.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeUtf8 } from '../lib/bytes.ts'
import { parseJson } from '../lib/json.ts'
import { type BrandTheme, parseTheme } from '../pages/brands/theme.ts'
import { ConfigError } from './config/config.ts'

/** Throws a ConfigError that names the file and what is wrong with it. */
export function readThemes(folder: string | null): readonly BrandTheme[] {
  if (folder === null) return []
  return filesOf(folder).map((file) => {
    const path = join(folder, file)
    try {
      const mark = readFileSync(path.replace(/\.json$/, '.svg'), 'utf8')
      const face = path.replace(/\.json$/, '.woff2')
      const typeface = existsSync(face) ? new Uint8Array(readFileSync(face)) : null
      const text = decodeUtf8(readFileSync(path))
      if (text === null) throw new Error('it is not UTF-8: save the file as UTF-8.')
      return parseTheme(file.slice(0, -'.json'.length), parseJson(text), mark, typeface)
    } catch (error) {
      throw new ConfigError(`THEME_DIR: ${path}: ${error instanceof Error ? error.message : 'it cannot be read'}`)
    }
  })
}

function filesOf(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.json'))
      .toSorted()
  } catch {
    throw new ConfigError(`THEME_DIR: there is no folder ${folder}.`)
  }
}

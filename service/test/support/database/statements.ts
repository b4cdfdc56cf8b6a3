/** The SQL texts in the sources of the program, for tests of what they ask. */
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** `text` is in lower case and with single spaces; a part that the program fills in stands as `${…}`. */
export type Statement = { readonly file: string; readonly text: string }

const source = fileURLToPath(new URL('../../../src/', import.meta.url))

export function programStatements(): Statement[] {
  return globSync(['**/*.ts'], { cwd: source })
    .filter((file) => !file.endsWith('.test.ts'))
    .flatMap((file) => statementsOf(file, readFileSync(source + file, 'utf8')))
}

/** Texts in quotes or backticks that are SQL. */
function statementsOf(file: string, code: string): Statement[] {
  const texts = code.matchAll(/`((?:[^`\\]|\\[^])*)`|'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"/g)
  return [...texts]
    .map(([, ...parts]) =>
      (parts.find((part) => part !== undefined) ?? '').replaceAll(/\s+/g, ' ').trim().toLowerCase(),
    )
    .filter((text) => /^\(?(?:select|insert|update|delete|with|truncate) /.test(text))
    .map((text) => ({ file, text }))
}

/** Matches the texts that a statement of the program becomes, also as a part of another one. */
export function patternOf(text: string): RegExp {
  const parts = text.split(/\$\{[^}]*\}/)
  return new RegExp(parts.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)).join('.*'))
}

/** Settings as zod schemas that carry the name of their variable. */
import { z } from 'zod'
import type { Parser } from './parsers.ts'

export type Setting = {
  readonly variable: string
  readonly fallback: string
  readonly help: string
  readonly secret: boolean
}

/**
 * Declares a setting of the environment, whose `describe` says what it means. The message of a wrong text names the variable, and repeats
 * what is not secret of the text.
 */
export function setting<T>(variable: string, { fallback, want, parse }: Parser<T>, isSecret = false) {
  const schema = z
    .string()
    .default(fallback)
    .transform((text, context): T => {
      const value = parse(text)
      if (value !== undefined) return value
      const found = isSecret ? 'something else' : shown(text)
      context.addIssue({ code: 'custom', message: `${variable} must be ${want}; found ${found}.` })
      return z.NEVER
    })
  declared.add(schema, { variable, fallback, secret: isSecret })
  return schema
}

/** Declares a setting whose text appears in no message. */
export function secret<T>(variable: string, parser: Parser<T>) {
  return setting(variable, parser, true)
}

/** Quotes a wrong text. A URL is shown up to its host, because an account, a path or a query can be secret. */
function shown(text: string): string {
  const [, scheme] = /^\s*([a-z][a-z0-9+.-]*):\/\//i.exec(text) ?? []
  if (scheme === undefined) return /:.*@/.test(text) && !/^mailto:/i.test(text) ? 'something else' : quote(text)
  const url = URL.parse(text)
  // An unescaped slash in a password would end the host before the @.
  const isClear = url !== null && (url.username !== '' || !text.includes('@'))
  return quote(`${scheme}://${isClear ? url.host : ''}…`)
}

const quote = (text: string) => JSON.stringify(text.slice(0, 100))

/** Returns a tree of the form of `schema` with `leaf` of each setting in it. */
export function mapSettings(schema: z.core.$ZodType, leaf: (setting: Setting) => unknown): unknown {
  const found = declared.get(schema)
  if (found !== undefined) return leaf({ ...found, help: z.globalRegistry.get(schema)?.description ?? '' })
  if (!(schema instanceof z.ZodObject))
    throw new TypeError('A schema of the configuration is neither setting nor object.')
  const fields = Object.entries(schema.shape as Record<string, z.core.$ZodType>)
  return Object.fromEntries(fields.map(([name, field]) => [name, mapSettings(field, leaf)]))
}

const declared = z.registry<Omit<Setting, 'help'>>()

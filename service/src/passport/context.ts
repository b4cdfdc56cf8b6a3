/**
 * `/contexts/passport/v1`: the JSON-LD context of the service's own terms (spec §2.8). It is served for ever as it is; a changed term
 * is `/v2`. No `@vocab`: a misspelt term must fail, not become a new one. All terms are protected, so no later context bends them.
 */
import { vocabularyUrl } from './links.ts'
import { terms, type Term } from './vocabulary.ts'

type Definition = string | Readonly<Record<string, unknown>>

/** The context document of one base URL. */
export function passportContext(baseUrl: string): Readonly<Record<string, unknown>> {
  const base = vocabularyUrl(baseUrl)
  const classes = terms.filter((term) => term.range === undefined)
  const free = terms.filter((term) => term.of?.length === 0)
  return {
    '@context': {
      '@version': 1.1,
      '@protected': true,
      ...Object.fromEntries(free.map((term) => [term.term, definition(term, base)])),
      ...Object.fromEntries(classes.map((term) => [term.term, classDefinition(term, base)])),
    },
  }
}

function classDefinition({ term }: Term, base: string): Definition {
  const properties = terms.filter(({ of }) => of?.includes(term))
  return {
    '@id': `${base}#${term}`,
    '@context': {
      '@protected': true,
      ...Object.fromEntries(properties.map((property) => [property.term, definition(property, base)])),
    },
  }
}

function definition({ term, range = 'string', many }: Term, base: string): Definition {
  const id = `${base}#${term}`
  if (many === true) return { '@id': id, '@container': '@set' }
  if (range === 'string') return id
  return { '@id': id, '@type': /^[A-Z]/.test(range) ? '@id' : `http://www.w3.org/2001/XMLSchema#${range}` }
}

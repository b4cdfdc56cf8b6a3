/** Schemas, contexts and JSON-LD tools of the tests; nothing is ever fetched. */
import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import jsonld, { type NodeObject } from 'jsonld'
import { baseUrl, dataOf } from './fixtures.ts'
import { passportContext } from '../../../src/passport/vocabulary.ts'

type Validate = (value: unknown) => string[]

/** Errors of a passport against the UNTP 0.7.0 schema. */
export const passportErrors: Validate = validator(
  new Ajv2020(options()),
  'untp-0.7.0/DigitalProductPassport.schema.json',
)
export const gs1LinksetErrors: Validate = validator(new Ajv(options()), 'gs1/linkset.schema.json')
export const untpLinksetErrors: Validate = validator(new Ajv(options()), 'untp-0.7.0/linkset.schema.json')

const contexts = new Map<string, NodeObject>([
  ['https://www.w3.org/ns/credentials/v2', dataOf('vcdm2/credentials-v2.jsonld')],
  ['https://vocabulary.uncefact.org/untp/0.7.0/context/', dataOf('untp-0.7.0/untp-context.jsonld')],
  [`${baseUrl}/contexts/passport/v1`, JSON.parse(JSON.stringify(passportContext(baseUrl)))],
])

/** A loader of the three contexts and of `more`; any other URL fails. */
export function loaderWith(more: Readonly<Record<string, object>> = {}) {
  return async (url: string) => {
    const document = contexts.get(url) ?? more[url]
    if (document === undefined) throw new Error(`not a local document: ${url}`)
    // `static`: jsonld may keep what it makes of the document; the three contexts never change.
    return { documentUrl: url, document: document as NodeObject, ...(contexts.has(url) && { tag: 'static' }) }
  }
}

/** Expands in safe mode: a property or type that no context knows is an error. */
export async function expanded(document: unknown): Promise<unknown> {
  return jsonld.expand(JSON.parse(JSON.stringify(document)), { documentLoader: loaderWith(), ...safe })
}

/** Property and type IRIs that only the `@vocab` of a UNTP type-scoped context made: misspelt terms. `characteristics` is meant to be open. */
export function catchAllTerms(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(catchAllTerms)
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => [
    ...[key, ...(key === '@type' ? [inner].flat().map(String) : [])].filter((iri) =>
      /^https:\/\/vocabulary\.uncefact\.org\/untp\/(?!Characteristics#)[A-Z]\w*#/.test(iri),
    ),
    ...catchAllTerms(inner),
  ])
}

/** Not in the published types of jsonld. */
const safe: object = { safe: true }

function options() {
  return { strict: false, allErrors: true, formats: { byte: true } } as const
}

function validator(ajv: Ajv | Ajv2020, path: string): Validate {
  formats.default(ajv)
  const validate = ajv.compile(dataOf(path))
  return (value) => {
    const isValid = validate(JSON.parse(JSON.stringify(value)))
    return isValid ? [] : (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`)
  }
}

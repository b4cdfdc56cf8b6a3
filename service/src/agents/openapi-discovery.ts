/** Operations that give out documents: well-known files, vocabularies, descriptions for machines. */
import type { z } from 'zod'
import { ifNoneMatch, open, type Answer, type Host, type Operation } from './openapi-operation.ts'
import { documentSchema, problemSchema, textSchema } from './schemas/common.ts'
import { linksetSchema } from './schemas/passport.ts'
import { healthSchema } from './schemas/rest.ts'
import { gatewayHealthSchema } from './schemas/gateway.ts'
import { generalErrorSchema } from './schemas/verdict.ts'

type Row = readonly [path: string, id: string, type: string, summary: string, schema?: z.ZodType]

const linksetMedia = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'
const text = 'text/plain; charset=utf-8'

const rows: readonly Row[] = [
  ['/.well-known/api-catalog', 'readApiCatalog', linksetMedia, 'Every API of this service (RFC 9727)', linksetSchema],
  ['/.well-known/ai-catalog.json', 'readAiCatalog', 'application/ai-catalog+json', 'Agents and tools of this service'],
  ['/.well-known/did.json', 'readDid', 'application/did+ld+json', 'The issuer’s keys (did:web)'],
  ['/.well-known/gs1resolver', 'readResolver', 'application/json', 'GS1 resolver description'],
  ['/.well-known/resolver', 'readResolverAlias', 'application/json', 'GS1 resolver description, under its other name'],
  ['/contexts/passport/v1', 'readContext', 'application/ld+json', 'JSON-LD context of the passport'],
  ['/ns/passport', 'readVocabulary', 'application/ld+json', 'Vocabulary of the passport'],
  ['/ns/unspecified-facility', 'readFacility', 'application/ld+json', 'Stands for a facility that nobody named'],
  ['/robots.txt', 'readRobots', text, 'What crawlers may fetch', textSchema],
  ['/sitemap.xml', 'readSitemap', 'application/xml', 'Pages of the documentation', textSchema],
  ['/llms.txt', 'readLlms', text, 'The service in one page, for language models', textSchema],
  ['/llms-full.txt', 'readLlmsFull', text, 'The same with every route and its command', textSchema],
]

/** Of a document that stays the same while the service runs. */
export const documentAnswers = (
  type: string,
  schema: z.ZodType = documentSchema,
): Readonly<Record<number, Answer>> => ({
  200: { description: 'The document.', headers: ['ETag', 'Cache-Control', ...open], content: { [type]: schema } },
  304: { description: 'It has not changed.', headers: ['ETag', 'Cache-Control', ...open] },
})

export const discoveryOperations: readonly Operation[] = [
  ...rows.map(([path, id, type, summary, schema]): Operation => ({
    method: 'get',
    path,
    id,
    tag: 'discovery',
    summary,
    parameters: [ifNoneMatch],
    answers: documentAnswers(type, schema),
  })),
  {
    method: 'get',
    path: '/.well-known/security.txt',
    id: 'readSecurity',
    tag: 'discovery',
    summary: 'Whom to tell of a vulnerability (RFC 9116)',
    parameters: [ifNoneMatch],
    answers: {
      ...documentAnswers(text, textSchema),
      404: {
        description: 'The operator has named nobody.',
        headers: ['Cache-Control', ...open],
        content: { 'application/json': generalErrorSchema, 'application/problem+json': problemSchema },
      },
    },
  },
  everywhere('/openapi.json', 'readOpenApi', 'This description', ['verification', 'gateway'], {
    ...documentAnswers('application/json'),
  }),
  everywhere('/health', 'readHealth', 'Whether the host does its work', ['gateway', 'verification', 'graphql'], {
    200: {
      description: 'Always; see `status`. The gateway says more.',
      headers: ['Cache-Control', ...open],
      content: { 'application/json': [gatewayHealthSchema, healthSchema] },
    },
  }),
]

function everywhere(
  path: string,
  id: string,
  summary: string,
  hosts: readonly [Host, ...Host[]],
  answers: Readonly<Record<number, Answer>>,
): Operation {
  return { hosts, method: 'get', path, id, tag: 'discovery', summary, answers }
}

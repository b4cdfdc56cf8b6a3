/**
 * Trusted documents: a file of the only documents that a service runs, by the SHA-256 of their texts. A request names one by its hash,
 * as `documentId` or as Apollo's `extensions.persistedQuery.sha256Hash`, or sends its text.
 */
import { hash as digest } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { GraphQLError, parse, validate, type GraphQLSchema } from 'graphql'
import { textWithin } from '../../lib/bytes.ts'
import { isObject, parseJsonObject, type JsonObject } from '../../lib/json.ts'
import { type PrepareOperation, rejectedOperation } from './prepare.ts'

/** Texts by the lower-case hex of their SHA-256. */
export type TrustedDocuments = ReadonlyMap<string, string>

const maxBytes = 16 * 1024 * 1024

/** Reads the file, a JSON object of hashes and texts. Throws an Error of one sentence for a file that cannot be used. */
export async function readTrustedDocuments(path: string, schema: GraphQLSchema): Promise<TrustedDocuments> {
  const text = await readText(path)
  const found = text === null ? null : parseJsonObject(text)
  if (found === null) throw new Error(`${path} is not a JSON object of documents by their SHA-256, of at most 16 MB.`)
  const documents = new Map<string, string>()
  for (const [hash, document] of Object.entries(found)) {
    const isRight = typeof document === 'string' && digest('sha256', document) === hash.toLowerCase()
    if (!isRight) throw new Error(`${path}: ${hash.slice(0, 100)} is not the SHA-256 of its document.`)
    const error = firstError(document, schema)
    if (error !== null) throw new Error(`${path}: the document ${hash} does not fit the schema: ${error}`)
    documents.set(hash.toLowerCase(), document)
  }
  return documents
}

function readText(path: string): Promise<string | null> {
  return textWithin(createReadStream(path), maxBytes).catch(({ code }: NodeJS.ErrnoException) => {
    throw new Error(`${path} cannot be read (${code ?? 'unknown reason'}).`)
  })
}

function firstError(document: string, schema: GraphQLSchema): string | null {
  try {
    return validate(schema, parse(document))[0]?.message ?? null
  } catch (error) {
    return error instanceof GraphQLError ? error.message : String(error)
  }
}

/** Prepares operations of these documents only; null accepts every text, and no hash. */
export function prepareTrusted(prepare: PrepareOperation, documents: TrustedDocuments | null): PrepareOperation {
  const texts = new Set(documents?.values())
  return (request) => {
    const { query } = request
    const hash = hashOf(request)
    if (documents === null)
      return hash === undefined || query !== '' ? prepare(request) : rejectedOperation(...keepsNone)
    if (hash === undefined) return texts.has(query) ? prepare(request) : rejectedOperation('FORBIDDEN', untrusted)
    const document = documents.get(hash)
    if (document === undefined) return rejectedOperation('FORBIDDEN', untrusted)
    return query === '' || query === document
      ? prepare({ ...request, query: document })
      : rejectedOperation('BAD_USER_INPUT', 'The query and its hash are of two documents: send one of them.')
  }
}

/** Clients with automatic persisted queries send the text next if they read this code or, as urql, this message. */
const keepsNone = ['PERSISTED_QUERY_NOT_SUPPORTED', 'PersistedQueryNotSupported'] as const
const untrusted =
  'This service runs trusted documents only, and this is none of them: send the SHA-256 of one as documentId or extensions.persistedQuery.sha256Hash.'

/** Returns parameters of GraphQL over HTTP with an empty query where they name their document by its hash. */
export function withReference(parameters: JsonObject): JsonObject {
  const { query, extensions } = parameters
  if (query !== undefined && query !== null) return parameters
  const hash = hashOf(parameters)
  if (hash === undefined) return parameters
  const others = isObject(extensions) ? extensions : {}
  return { ...parameters, query: '', extensions: { ...others, persistedQuery: { version: 1, sha256Hash: hash } } }
}

/** Returns the hash that names a document, in lower case. An id may begin with the name of the algorithm. */
function hashOf({ documentId, extensions }: { documentId?: unknown; extensions?: unknown }): string | undefined {
  const persisted = isObject(extensions) ? extensions['persistedQuery'] : undefined
  const given = documentId ?? (isObject(persisted) ? persisted['sha256Hash'] : undefined)
  return typeof given === 'string'
    ? given
        .slice(0, 100)
        .toLowerCase()
        .replace(/^sha256:/, '')
    : undefined
}

/** Writes answers of /graphql: JSON in the media type that was asked for, never stored (GraphQL over HTTP, «Response»). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ErrorCode } from './error-codes.ts'

export type Headers = Readonly<Record<string, string>>

export function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { status, text, headers }: { readonly status: number; readonly text: string; readonly headers: Headers },
): void {
  if (response.destroyed) return
  response
    .writeHead(status, {
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      Vary: 'Accept, Authorization',
      ...headers,
      'Content-Length': Buffer.byteLength(text),
    })
    .end(request.method === 'HEAD' ? undefined : text)
}

/** A request that is refused before it is read as GraphQL: one error in GraphQL's form. */
export function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  { code, message }: { readonly code: ErrorCode; readonly message: string },
  headers: Headers,
): void {
  const wantsGraphql = request.headers.accept?.toLowerCase().includes('application/graphql-response+json') === true
  const type = wantsGraphql ? 'application/graphql-response+json' : 'application/json'
  const text = JSON.stringify({ errors: [{ message, extensions: { code } }] })
  answer(request, response, { status, text, headers: { 'Content-Type': `${type}; charset=utf-8`, ...headers } })
}

/** What one operation of the service takes and answers, as the tables of `openapi-*.ts` state it; `openapi.ts` makes the document of it. */
import { z } from 'zod'
import { generalErrorSchema } from './schemas/verdict.ts'
import { problemSchema } from './schemas/common.ts'

export type Host = 'verification' | 'gateway' | 'graphql'

/** Headers of answers; those that come only sometimes are not among what an answer promises. */
export const headers = {
  'X-Request-Id': of(z.string().max(64), 'Your own X-Request-Id, or a new one; the log knows the request by it.'),
  ETag: of(z.string(), 'Names these bytes; send it back in If-None-Match.'),
  'Cache-Control': of(z.string(), 'Errors are never stored.'),
  'Content-Language': of(z.string(), 'Language of the page.'),
  'Content-Security-Policy': of(z.string(), 'Nothing from elsewhere, no inline script.'),
  'Content-Disposition': of(z.string(), 'The text is a file, never a page.'),
  'Referrer-Policy': of(z.literal('no-referrer'), 'The address of a tap goes nowhere.'),
  Vary: of(z.string(), 'Request headers that the answer depends on.'),
  Link: of(z.string(), 'Where related documents are (RFC 8288).'),
  Location: of(z.string(), 'Where the answer is.'),
  'Access-Control-Allow-Origin': of(z.literal('*'), 'Open to every origin.'),
  'X-RateLimit-Limit': of(count(), 'Requests a client may make in a window.'),
  'X-RateLimit-Remaining': of(count(), 'Requests left in this window.'),
  'X-RateLimit-Reset': of(count(), 'Seconds until the window ends.'),
  'RateLimit-Policy': of(
    z.string(),
    'The limit as draft-ietf-httpapi-ratelimit-headers writes it: "default";q=60;w=60',
  ),
  RateLimit: of(z.string(), 'What is left of it: "default";r=59;t=30'),
  'Retry-After': of(count(), 'Seconds to wait.'),
  'PAYMENT-REQUIRED': of(z.string(), 'The offer of x402 version 2, base64.'),
  'X-PAYMENT-RESPONSE': of(z.string(), 'Receipt of the settlement, x402 version 1, base64.'),
  'PAYMENT-RESPONSE': of(z.string(), 'Receipt of the settlement, x402 version 2, base64.'),
  'WWW-Authenticate': of(z.string(), 'How to authenticate (RFC 6750).'),
} as const
export type HeaderName = keyof typeof headers

export type Answer = {
  readonly description: string
  /** Beside `X-Request-Id`, which every answer has. */
  readonly headers?: readonly HeaderName[]
  /** Headers that the answer has only sometimes. */
  readonly sometimes?: readonly HeaderName[]
  /** Schemas by media type; each schema has an id. More than one schema: any of them. */
  readonly content?: Readonly<Record<string, z.ZodType | readonly z.ZodType[]>>
}

export type Parameter = {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: boolean
  readonly schema: z.ZodType
  readonly description?: string
}

export type Operation = {
  /** The first is where it is tried from the reference; most have one. */
  readonly hosts?: readonly [Host, ...Host[]]
  readonly method: 'get' | 'post'
  readonly path: string
  readonly id: string
  readonly tag: 'assets' | 'taps' | 'passports' | 'pages' | 'gateway' | 'graphql' | 'agents' | 'discovery'
  readonly summary: string
  readonly description?: string
  readonly parameters?: readonly Parameter[]
  readonly body?: { readonly schema: z.ZodType; readonly required: boolean }
  readonly security?: readonly ('payment' | 'paymentSignature' | 'apiKey')[]
  readonly answers: Readonly<Record<number, Answer>>
}

export const open = ['Access-Control-Allow-Origin'] as const
export const budget = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'RateLimit-Policy',
  'RateLimit',
] as const

/** An error of the verification host: JSON, never stored, and a problem for those who ask for one. */
export function failed(
  description: string,
  schema: z.ZodType | readonly z.ZodType[] = generalErrorSchema,
  more: Pick<Answer, 'headers' | 'sometimes'> = {},
): Answer {
  return {
    description,
    ...more,
    headers: ['Cache-Control', ...open, ...(more.headers ?? [])],
    content: { 'application/json': schema, 'application/problem+json': problemSchema },
  }
}

export const ifNoneMatch: Parameter = {
  name: 'If-None-Match',
  in: 'header',
  schema: z.string(),
  description: 'An ETag from before: 304 when nothing has changed.',
}

function of(schema: z.ZodType, description: string) {
  return { schema, description }
}

function count() {
  return z.int().min(0)
}

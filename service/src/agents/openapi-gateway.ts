/** Operations of the gateway and of the GraphQL host (spec §4.7–§4.9). */
import { z } from 'zod'
import { open, type Answer, type HeaderName, type Operation } from './openapi-operation.ts'
import { pageSchema } from './schemas/common.ts'
import {
  attestationKeysSchema,
  gatewayErrorSchema,
  paymentDocumentSchema,
  paymentRequiredSchema,
  purchaseSchema,
  soldSchema,
} from './schemas/gateway.ts'
import { graphqlAnswerSchema, graphqlRequestSchema } from './schemas/graphql.ts'

const json = (schema: z.ZodType) => ({ 'application/json': schema })
const ofSale = ['Cache-Control', 'Vary', ...open] as const
const notSold = (description: string, more: Pick<Answer, 'headers' | 'sometimes'> = {}): Answer => ({
  description,
  ...more,
  headers: [...ofSale, ...(more.headers ?? [])],
  content: json(gatewayErrorSchema),
})

const payment = (name: string, version: number) => ({
  name,
  in: 'header' as const,
  schema: z.string().max(16_000),
  description: `A signed payment, x402 version ${version}, base64. Without one the answer is the offer.`,
})

const gatewayOperations: readonly Operation[] = [
  {
    hosts: ['gateway'],
    method: 'post',
    path: '/verify',
    id: 'buyAttestation',
    tag: 'gateway',
    summary: 'Buy the signed state of one asset (x402)',
    description:
      'Without a payment 402 with the offer: the handshake, not an error. Nothing is charged before the proof is stored; whoever repeats the same payment gets the same proof.',
    parameters: [payment('X-PAYMENT', 1), payment('PAYMENT-SIGNATURE', 2)],
    body: { schema: purchaseSchema, required: false },
    security: ['payment', 'paymentSignature'],
    answers: {
      200: {
        description: 'The signed state and the payment for it.',
        headers: [...ofSale, 'X-PAYMENT-RESPONSE', 'PAYMENT-RESPONSE'],
        content: json(soldSchema),
      },
      400: notSold('The body, the chain or the asset id is not one that can be attested.'),
      402: {
        description: 'The offer, or what was wrong with the payment.',
        headers: ofSale,
        sometimes: ['PAYMENT-REQUIRED'],
        content: json(paymentRequiredSchema),
      },
      404: notSold('No asset has this id. Nothing was charged.'),
      413: notSold('The body has more than 16 KiB.'),
      429: notSold('Too many requests of this client.', { headers: ['Retry-After'] }),
      500: notSold('The request failed unexpectedly.'),
      502: notSold('The asset could not be read from the chain. Nothing was charged.'),
      503: notSold('Not now: the same payment is tried again.', { headers: ['Retry-After'] }),
    },
  },
  ...[
    ['/.well-known/x402', 'readOffers'],
    ['/.well-known/x402.json', 'readOffersJson'],
  ].map(([path = '', id = '']): Operation => ({
    hosts: ['gateway'],
    method: 'get',
    path,
    id,
    tag: 'gateway',
    summary: 'What is sold and for how much',
    answers: {
      200: {
        description: 'Equal to the 402.',
        headers: ['Cache-Control', ...open],
        content: json(paymentDocumentSchema),
      },
    },
  })),
  {
    hosts: ['gateway'],
    method: 'get',
    path: '/.well-known/attestation.json',
    id: 'readAttestationKeys',
    tag: 'gateway',
    summary: 'Keys that sign attestations, and how to check one',
    answers: {
      200: {
        description: 'Every key ever used.',
        headers: ['Cache-Control', ...open],
        content: json(attestationKeysSchema),
      },
    },
  },
]

const graphqlTypes = {
  'application/json; charset=utf-8': graphqlAnswerSchema,
  'application/graphql-response+json; charset=utf-8': graphqlAnswerSchema,
}
const graphqlAnswer = (
  description: string,
  headers: readonly HeaderName[] = [],
  sometimes: readonly HeaderName[] = [],
): Answer => ({ description, headers: ['Cache-Control', 'Vary', ...headers], sometimes, content: graphqlTypes })

const limits = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'RateLimit-Policy',
  'RateLimit',
] as const
const graphqlAnswers: Readonly<Record<number, Answer>> = {
  200: graphqlAnswer('The answer; application/json also carries errors under 200.', limits),
  400: graphqlAnswer('The operation or its variables are not valid.', limits),
  401: graphqlAnswer('The API key is missing, wrong or revoked.', ['WWW-Authenticate']),
  405: graphqlAnswer('A mutation by GET.', limits),
  406: graphqlAnswer('Accept names no type that is answered.', limits),
  413: graphqlAnswer('The body has more than 64 kB.', limits),
  415: graphqlAnswer('The body is not JSON in UTF-8.', limits),
  429: graphqlAnswer('Too many requests with this key, or with keys that are none.', ['Retry-After'], limits),
  500: graphqlAnswer('The request failed unexpectedly, perhaps before the key was known.', [], limits),
}

const graphqlOperations: readonly Operation[] = [
  {
    hosts: ['graphql'],
    method: 'post',
    path: '/graphql',
    id: 'runGraphql',
    tag: 'graphql',
    summary: 'Run a GraphQL query or mutation',
    description:
      'Subscriptions are on the same path over WebSocket (graphql-transport-ws). The schema is in the playground.',
    body: { schema: graphqlRequestSchema, required: true },
    security: ['apiKey'],
    answers: graphqlAnswers,
  },
  {
    hosts: ['graphql'],
    method: 'get',
    path: '/graphql',
    id: 'queryGraphql',
    tag: 'graphql',
    summary: 'Run a GraphQL query',
    parameters: [
      { name: 'query', in: 'query', required: true, schema: z.string().max(8_000) },
      { name: 'variables', in: 'query', schema: z.string().max(8_000), description: 'JSON.' },
      { name: 'operationName', in: 'query', schema: z.string().max(200) },
    ],
    security: ['apiKey'],
    answers: graphqlAnswers,
  },
  {
    hosts: ['graphql'],
    method: 'get',
    path: '/playground',
    id: 'openPlayground',
    tag: 'graphql',
    summary: 'Interactive playground',
    answers: {
      200: {
        description: 'The page; it asks for an API key and keeps it in memory only.',
        headers: ['Cache-Control', 'Content-Security-Policy', 'Referrer-Policy'],
        content: { 'text/html; charset=utf-8': pageSchema },
      },
    },
  },
]

export const otherHostsOperations: readonly Operation[] = [...gatewayOperations, ...graphqlOperations]

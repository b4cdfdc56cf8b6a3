/** Operations of passports, their status lists, and the pages and links of an item (spec §2.8, §4.5, §4.6). */
import { z } from 'zod'
import { limitedAnswers, tapFailure, tapParameters, tokenIdInPath, unchanged } from './openapi-assets.ts'
import { budget, failed, ifNoneMatch, open, type Answer, type Operation, type Parameter } from './openapi-operation.ts'
import { gtinParameter, pageSchema, problemSchema, serialParameter } from './schemas/common.ts'
import { jwtSchema, linksetSchema, passportSchema, signedPassportSchema, statusListSchema } from './schemas/passport.ts'
import { passportRefusedSchema } from './schemas/rest.ts'
import { generalErrorSchema } from './schemas/verdict.ts'

const gtinInPath: Parameter = { name: 'gtin', in: 'path', required: true, schema: gtinParameter }
const serialInPath: Parameter = { name: 'serial', in: 'path', required: true, schema: serialParameter }

const refused = (description: string) =>
  failed(description, passportRefusedSchema, { headers: ['Referrer-Policy', 'Vary', ...budget] })

const passportAnswers: Readonly<Record<number, Answer>> = {
  200: {
    description: 'The passport; unsigned unless Accept clearly prefers a signed form.',
    headers: ['ETag', 'Cache-Control', 'Referrer-Policy', 'Vary', ...open, ...budget],
    content: {
      'application/ld+json': passportSchema,
      'application/vc+jwt': jwtSchema,
      'application/vc': signedPassportSchema,
    },
  },
  400: refused('picc or cmac is missing or malformed, the path is, or the tap is not genuine or was used before.'),
  404: refused('No passport at this path, or the chip belongs to another item or to none.'),
  406: refused('Only signed forms were asked for, and none is offered.'),
  429: failed('Too many taps of this client.', generalErrorSchema, {
    headers: ['Referrer-Policy', 'Vary', 'Retry-After', ...budget],
  }),
  500: tapFailure('The request failed unexpectedly.'),
  502: tapFailure('The chip was read, the chain could not be: the same link is tried again.'),
  503: tapFailure('The verifier holds no keys, or the request was a prefetch.', { sometimes: ['Retry-After'] }),
}

const page = (description: string, more: Pick<Answer, 'headers'> = {}): Answer => ({
  description,
  headers: ['Cache-Control', 'Content-Language', 'Content-Security-Policy', ...budget, ...(more.headers ?? [])],
  content: { 'text/html; charset=utf-8': pageSchema },
})

/** Below `/01/`: pages for browsers, linksets and redirects for machines. */
const linkAnswers: Readonly<Record<number, Answer>> = {
  200: {
    description: 'The page, or the linkset for those who ask for it.',
    headers: ['Cache-Control', 'Vary', 'Link', ...open, ...budget],
    content: { 'text/html; charset=utf-8': pageSchema, 'application/linkset+json': linksetSchema },
  },
  303: { description: 'To what linkType names.', headers: ['Location', 'Cache-Control', ...open, ...budget] },
  400: page('The address is no GS1 Digital Link.'),
  404: {
    description: 'Nothing has this address, or no such link.',
    headers: ['Cache-Control', ...budget],
    content: {
      'text/html; charset=utf-8': pageSchema,
      'application/json': generalErrorSchema,
      'application/problem+json': problemSchema,
    },
  },
  429: page('Too many requests of this client.', { headers: ['Retry-After'] }),
  500: page('The request failed unexpectedly.'),
  502: page('The chain could not be read.'),
  503: page('The verifier holds no keys, or the request was a prefetch.'),
}

const linkType: Parameter = {
  name: 'linkType',
  in: 'query',
  schema: z.string().max(100),
  description: '`linkset`, or one of its link types, such as `gs1:verificationService`.',
}
const language: Parameter = {
  name: 'lang',
  in: 'query',
  schema: z.string().max(10),
  description: 'Language of the page; without it Accept-Language decides.',
}

export const passportOperations: readonly Operation[] = [
  {
    method: 'get',
    path: '/api/dpp/01/{gtin}/21/{serial}',
    id: 'readPassport',
    tag: 'passports',
    summary: 'Passport of a tapped item, by GTIN and serial',
    parameters: [gtinInPath, serialInPath, ...tapParameters],
    answers: passportAnswers,
  },
  {
    method: 'get',
    path: '/api/dpp/token/{tokenId}',
    id: 'readPassportByToken',
    tag: 'passports',
    summary: 'Passport of a tapped item, by token id',
    parameters: [tokenIdInPath, ...tapParameters],
    answers: passportAnswers,
  },
  {
    method: 'get',
    path: '/api/status/{purpose}/{list}',
    id: 'readStatusList',
    tag: 'passports',
    summary: 'Status list of signed passports',
    parameters: [
      { name: 'purpose', in: 'path', required: true, schema: z.enum(['suspension', 'revocation']) },
      { name: 'list', in: 'path', required: true, schema: z.string().regex(/^[1-9][0-9]{0,5}$/) },
      ifNoneMatch,
    ],
    answers: {
      200: {
        description: 'The list, always signed.',
        headers: ['ETag', 'Cache-Control', 'Vary', ...open, ...budget],
        content: { 'application/vc': statusListSchema, 'application/vc+jwt': jwtSchema },
      },
      304: unchanged,
      404: failed('There is no such list.', generalErrorSchema, { headers: ['Vary', ...budget] }),
      ...limitedAnswers,
    },
  },
  {
    method: 'get',
    path: '/',
    id: 'openHome',
    tag: 'pages',
    summary: 'Start page with a search',
    parameters: [
      language,
      { name: 'token', in: 'query', schema: z.string().max(200), description: 'A token id to look up.' },
      { name: 'gtin', in: 'query', schema: z.string().max(200), description: 'A GTIN to look up.' },
      { name: 'serial', in: 'query', schema: z.string().max(200), description: 'The serial of the GTIN.' },
    ],
    answers: {
      200: page('The page.', { headers: ['Link'] }),
      303: { description: 'To the page of what was searched.', headers: ['Location', 'Cache-Control', ...budget] },
      400: page('What was searched is no id; the form again.'),
      429: page('Too many requests of this client.', { headers: ['Retry-After'] }),
      500: page('The request failed unexpectedly.'),
    },
  },
  {
    method: 'get',
    path: '/01/{gtin}',
    id: 'openClass',
    tag: 'pages',
    summary: 'Page and links of a product class',
    parameters: [gtinInPath, language, linkType],
    answers: linkAnswers,
  },
  {
    method: 'get',
    path: '/01/{gtin}/21/{serial}',
    id: 'openItem',
    tag: 'pages',
    summary: 'Page and links of an item (GS1 Digital Link)',
    description: 'With picc and cmac the page of a tap, without them the on-chain record.',
    parameters: [
      gtinInPath,
      serialInPath,
      language,
      linkType,
      ...tapParameters.filter(({ in: place }) => place === 'query').map((one) => ({ ...one, required: false })),
    ],
    answers: linkAnswers,
  },
  {
    method: 'get',
    path: '/token/{tokenId}',
    id: 'openToken',
    tag: 'pages',
    summary: 'Page of a token: its on-chain record',
    parameters: [tokenIdInPath, language],
    answers: {
      200: page('The page.'),
      400: page('The token id is none.'),
      404: page('No asset has this token id.'),
      429: page('Too many requests of this client.', { headers: ['Retry-After'] }),
      500: page('The request failed unexpectedly.'),
      502: page('The chain could not be read.'),
    },
  },
]

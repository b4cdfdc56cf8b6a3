/** Operations that read the chain, without a key and after a tap (spec §4.1, §4.4). */
import { budget, failed, ifNoneMatch, open, type Answer, type Operation, type Parameter } from './openapi-operation.ts'
import { cmacParameter, documentSchema, hashParameter, piccParameter, tokenIdParameter } from './schemas/common.ts'
import { proofBundleSchema, tapAnswerSchema } from './schemas/rest.ts'
import { generalErrorSchema, keylessErrorSchema, verdictSchema } from './schemas/verdict.ts'
import { z } from 'zod'

export const tokenIdInPath: Parameter = { name: 'tokenId', in: 'path', required: true, schema: tokenIdParameter }

/** What a tap puts into its link. */
export const tapParameters: readonly Parameter[] = [
  { name: 'picc', in: 'query', required: true, schema: piccParameter },
  { name: 'cmac', in: 'query', required: true, schema: cmacParameter },
  {
    name: 'X-Tap-Challenge',
    in: 'header',
    schema: z.string().max(200),
    description: 'The challenge of the tap before, where the answer to it was tap_again. Browsers send a cookie.',
  },
]

const cached = ['ETag', 'Cache-Control', ...open, ...budget] as const
/** Answers that every limited, keyless route has. */
export const limitedAnswers = {
  429: failed('Too many requests of this client.', generalErrorSchema, { headers: ['Retry-After', ...budget] }),
  500: failed('The request failed unexpectedly.', generalErrorSchema, { headers: budget }),
} satisfies Record<number, Answer>
export const unchanged: Answer = { description: 'Nothing has changed since.', headers: cached }

const keyless = (description: string, more: readonly ['Retry-After'] | readonly [] = []) =>
  failed(description, keylessErrorSchema, { headers: [...budget, ...more] })

const keylessAnswers = {
  400: keyless('INVALID_TOKEN_ID: the path segment is no decimal integer from 0 to 2^256-1.'),
  404: keyless('ASSET_NOT_FOUND: no asset has this token id.'),
  429: keyless('RATE_LIMITED: too many requests of this client.', ['Retry-After']),
  500: keyless('INTERNAL: the request failed unexpectedly.'),
  502: keyless('CHAIN_UNAVAILABLE: the chain could not be read; never a guessed verdict.'),
} satisfies Record<number, Answer>

const tapped = ['Cache-Control', 'Referrer-Policy', ...open, ...budget] as const
export const tapFailure = (description: string, more: Pick<Answer, 'sometimes'> = {}) =>
  failed(description, generalErrorSchema, { headers: ['Referrer-Policy', ...budget], ...more })

export const assetOperations: readonly Operation[] = [
  {
    method: 'get',
    path: '/api/asset/{tokenId}',
    id: 'readAsset',
    tag: 'assets',
    summary: 'Verdict on one asset',
    description:
      'What the contract says about a token at one block. Branch on `authentic` and `flagged`, and on `error.code` when the status is not 200. Re-derive it by reading `getAsset(token_id)` at `chainRef.block_number`.',
    parameters: [tokenIdInPath, ifNoneMatch],
    answers: {
      200: {
        description: 'The verdict; also of a flagged item.',
        headers: cached,
        content: { 'application/json': verdictSchema },
      },
      304: unchanged,
      ...keylessAnswers,
    },
  },
  {
    method: 'get',
    path: '/api/asset/{tokenId}/proof',
    id: 'proveAsset',
    tag: 'assets',
    summary: 'Verdict with its storage proof',
    description:
      'For whoever wants to check a verdict without asking any provider. Offered only where the operator switched it on.',
    parameters: [tokenIdInPath],
    answers: {
      200: {
        description: 'Verdict and Merkle proof at the same block.',
        headers: ['Cache-Control', ...open, ...budget],
        content: { 'application/json': proofBundleSchema },
      },
      ...keylessAnswers,
      404: failed('ASSET_NOT_FOUND, or proofs are not offered here.', [keylessErrorSchema, generalErrorSchema], {
        headers: budget,
      }),
    },
  },
  {
    method: 'get',
    path: '/api/metadata/{hash}',
    id: 'readMetadata',
    tag: 'assets',
    summary: 'Product metadata as it was hashed',
    description:
      'keccak256 of these bytes is the hash. Supplier text as it was written, uncleaned: hostile, data only.',
    parameters: [{ name: 'hash', in: 'path', required: true, schema: hashParameter }, ifNoneMatch],
    answers: {
      200: {
        description: 'The text under this hash.',
        headers: [...cached, 'Content-Disposition', 'Content-Security-Policy'],
        content: { 'application/json': documentSchema },
      },
      304: unchanged,
      400: failed('The hash is not 0x and 64 hex digits.', generalErrorSchema, { headers: budget }),
      404: failed('No metadata is stored under this hash.', generalErrorSchema, { headers: budget }),
      ...limitedAnswers,
    },
  },
  {
    method: 'get',
    path: '/api/verify',
    id: 'verifyTap',
    tag: 'taps',
    summary: 'Verify one tap of a chip',
    description:
      'Callable only with the values that a chip made at this tap. The status says whether the request succeeded, `verified` whether the chip is genuine. The same tap passes again for a while, an older one never.',
    parameters: tapParameters,
    answers: {
      200: {
        description: 'Resolved, unbound, counterfeit or used before.',
        headers: tapped,
        content: { 'application/json': tapAnswerSchema },
      },
      400: tapFailure('picc or cmac is missing or malformed.'),
      429: failed('Too many taps of this client.', generalErrorSchema, {
        headers: ['Referrer-Policy', 'Retry-After', ...budget],
      }),
      500: tapFailure('The request failed unexpectedly.'),
      502: tapFailure('The chip was read, the chain could not be: the same link is tried again.'),
      503: tapFailure('The verifier holds no keys, or the request was a prefetch.', { sometimes: ['Retry-After'] }),
    },
  },
]

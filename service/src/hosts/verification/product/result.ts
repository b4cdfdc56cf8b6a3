/** The Result object of EN 18222: what its routes answer with instead of a passport. */
import { uncachedJson } from '../../../http/responses.ts'
import type { ServiceError } from '../../../lib/errors.ts'
import type { Headers } from '../request.ts'

const badRequest = [400, 'ClientErrorBadRequest', 'INVALID_ARGUMENT'] as const
const keyless = [401, 'ClientNotAuthorized', 'UNAUTHENTICATED'] as const
const forbidden = [403, 'ClientForbidden', 'FORBIDDEN'] as const
const missing = [404, 'ClientErrorResourceNotFound', 'ASSET_NOT_FOUND'] as const

/** Each reason with its status, the code of the standard, the code of our error catalogue and a sentence. */
const reasons = {
  badIdentifier: [
    ...badRequest,
    'The identifier is not one of this service. A dppId is the URL of a document below /api/product, a productId a GS1 Digital Link or a GTIN; both percent-encoded.',
  ],
  badDate: [...badRequest, 'The date must be one moment of UTC that has passed, such as 2026-03-01T00:00:00Z.'],
  badRepresentation: [...badRequest, 'The representation is full or compressed.'],
  badElementPath: [
    ...badRequest,
    'The element path must name one element, such as materials[0].name; wildcards, slices and filters select several.',
  ],
  badKey: [
    ...keyless,
    'This API key is wrong, expired or revoked. Leave the header Authorization out to read what is public.',
  ],
  noKey: [...keyless, 'Send an API key of an access tier in the header Authorization: Bearer <API_KEY>.'],
  keyElsewhere: [...forbidden, 'This API key may not be used from your network. See touchstone key show <id>'],
  noTier: [
    ...forbidden,
    'This API key lacks the scope passport:interest or passport:authority. Make one with: touchstone key create',
  ],
  tooManyKeys: [
    429,
    'ClientTooManyRequests',
    'RATE_LIMITED',
    'Too many requests with unknown keys. Try again in a minute.',
  ],
  badHash: [...badRequest, 'A hash is 0x and 64 lower-case hex digits.'],
  noDocument: [...missing, 'No document that this key may read is stored under this hash.'],
  noElement: [...missing, 'The passport has no such element.'],
  notFound: [...missing, 'There is no passport under this identifier, or there was none at that moment.'],
} as const

export type Reason = keyof typeof reasons

export function result(reason: Reason, headers: Headers): Response {
  const [status, statusCode, code, text] = reasons[reason]
  return resultResponse(status, { statusCode, code, text }, headers)
}

const statusCodes: Readonly<Record<number, string>> = {
  400: 'ClientErrorBadRequest',
  404: 'ClientErrorResourceNotFound',
  408: 'ClientErrorBadRequest', // the standard has no code of its own
  429: 'ClientTooManyRequests',
}

/** Words a fault, and an exceeded limit. */
export function faultResult({ status, code, message }: ServiceError, headers: Headers): Response {
  const statusCode = statusCodes[status] ?? 'ServerInternalError'
  return resultResponse(status, { statusCode, code, text: message }, headers)
}

function resultResponse(
  status: number,
  { statusCode, code, text }: { readonly statusCode: string; readonly code: string; readonly text: string },
  headers: Headers,
): Response {
  const timestamp = new Date().toISOString()
  return uncachedJson(status, { statusCode, message: [{ messageType: 'Error', text, code, timestamp }] }, headers)
}

/**
 * GET /api/asset/{tokenId} for verdicts that are ready (spec §4.1), in front of the router: one map lookup, one budget, one write.
 * Anything unusual falls through to the router, whose answer to the same request has the same bytes (tested).
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Answer, Verdicts } from '../asset/verdicts.ts'
import type { ClientKey } from '../http/client-key.ts'
import type { Budget, RateLimiter } from '../http/rate-limit.ts'
import { requestIdFor } from '../http/request-id.ts'
import { matchesETag } from '../http/respond.ts'
import { assetPrefix, sharedHeaders, verdictHeaders } from './asset.ts'

export function fastPath(
  {
    verdicts,
    limiter,
    clientKey,
  }: { readonly verdicts: Verdicts; readonly limiter?: RateLimiter | undefined; readonly clientKey: ClientKey },
  router: RequestListener,
): RequestListener {
  /** Within the budget the answer is written, else the router refuses: a refusal costs nothing, so that it is refused too. */
  function answerWithin(
    budget: Budget | undefined,
    request: IncomingMessage,
    response: ServerResponse,
    answer: Answer,
  ): void {
    if (budget?.allowed === false) return router(request, response)
    const same = matchesETag(headerOf(request, 'if-none-match'), answer.etag)
    const headers = same ? sharedHeaders(answer, budget) : verdictHeaders(answer, budget)
    headers.push('X-Request-Id', requestIdFor(headerOf(request, 'x-request-id'))) // setHeader() costs more than the rest of the answer
    if (same) response.writeHead(304, headers).end()
    else response.writeHead(200, headers).end(answer.body, answer.byteLength === answer.body.length ? 'latin1' : 'utf8') // ASCII is cheaper as Latin-1
  }

  return (request, response) => {
    const { url = '' } = request
    if (request.method !== 'GET' || !url.startsWith(assetPrefix)) return router(request, response)
    const answer = verdicts.ready(url.slice(assetPrefix.length))
    if (answer === undefined) return router(request, response)
    const budget = limiter?.take(clientKey(request.socket.remoteAddress, headerOf(request, 'x-forwarded-for')))
    // No promise where this process counts alone: it would cost as much as the answer.
    if (budget instanceof Promise) void budget.then((shared) => answerWithin(shared, request, response, answer))
    else answerWithin(budget, request, response, answer)
  }
}

/** A header without building the object of all of them; that is done only when the name is there. */
function headerOf(request: IncomingMessage, name: string): string | undefined {
  const { rawHeaders } = request
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const found = rawHeaders[index] ?? ''
    if (found.length === name.length && found.toLowerCase() === name) return request.headers[name] as string
  }
  return undefined
}

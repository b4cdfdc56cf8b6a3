/**
 * GET /api/asset/{tokenId} for verdicts that are ready (spec §4.1), in front of the router: one map look-up, one quota, one write.
 * Anything unusual falls through to the router, whose answer to the same request has the same bytes (tested).
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { VerdictAnswer, Verdicts } from '../../assets/verdicts.ts'
import type { ClientKey } from '../../http/client-ip.ts'
import { matchesIfNoneMatch } from '../../http/etag.ts'
import { getHeader, requestIdFor, requestIdOf } from '../../http/request.ts'
import type { Quota } from '../../http/rate-limit/limiter.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import type { RouteSite } from './request.ts'
import { assetPrefix, sharedHeaders, verdictHeaders } from './routes/asset.ts'

type FastPath = RouteSite & {
  readonly verdicts: Verdicts
  readonly clientKey: ClientKey
  readonly log: Log
}

export function fastPath({ verdicts, limiter, clientKey, log }: FastPath, router: RequestListener): RequestListener {
  /** Over quota it falls through to the router, which rejects without consuming quota again. */
  function send(
    quota: Quota | undefined,
    request: IncomingMessage,
    response: ServerResponse,
    answer: VerdictAnswer,
  ): void {
    if (quota?.allowed === false) return router(request, response)
    const isSame = matchesIfNoneMatch(getHeader(request, 'if-none-match'), answer.etag)
    const headers = isSame ? sharedHeaders(answer, quota) : verdictHeaders(answer, quota)
    headers.push('X-Request-Id', requestIdFor(getHeader(request, 'x-request-id'))) // setHeader() costs more than the rest of the answer
    if (isSame) response.writeHead(304, headers).end()
    else response.writeHead(200, headers).end(answer.body, answer.byteLength === answer.body.length ? 'latin1' : 'utf8') // ASCII is cheaper as Latin-1
  }

  return (request, response) => {
    const { url = '' } = request
    if (request.method !== 'GET' || !url.startsWith(assetPrefix)) return router(request, response)
    const answer = verdicts.ready(url.slice(assetPrefix.length))
    if (answer === undefined) return router(request, response)
    const quota = limiter?.take(clientKey(request.socket.remoteAddress, getHeader(request, 'x-forwarded-for')))
    // A local limiter returns no promise: a promise would cost as much as the answer.
    if (quota instanceof Promise)
      quota
        .then((shared) => send(shared, request, response, answer))
        .catch((error: unknown) => {
          log.error('request failed', { reason: reasonOf(error), requestId: requestIdOf(response) })
          response.destroy()
        })
    else send(quota, request, response, answer)
  }
}

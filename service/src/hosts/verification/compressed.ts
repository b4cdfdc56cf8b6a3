/**
 * Compresses answers that are the same for everybody. An answer to a tap, or to a request with a credential, is never compressed: an attacker who can
 * add text to such a request and see the length of its answer could guess a secret in it, character by character (BREACH). The tap in the
 * address, the ticket in the page and the text of a passport stay out of reach that way.
 */
import type { Hono } from 'hono'
import { responseCompressor } from '../../http/compression.ts'
import { isRead, rawQuery, type Env } from './request.ts'

/** Files of pages. They hold no secret and repeat nothing of a request, to which a browser adds the cookies of its taps. */
const files = '/assets/*'
/** Paths of pages, files, documents and public product information. */
const paths = [
  files,
  '/',
  '/01/*',
  '/token/*',
  '/check',
  '/bulk',
  '/docs',
  '/docs/*',
  '/openapi.json',
  '/llms.txt',
  '/llms-full.txt',
  '/.well-known/*',
  '/contexts/*',
  '/ns/*',
  '/api/product/*',
  '/api/metadata/*',
  '/dpps/*',
  '/dppsByProductId/*',
  '/dppsByProductIdAndDate/*',
  '/dppsByIdAndDate/*',
]

export function compressedRoutes(app: Hono<Env>): void {
  const compressed = responseCompressor()
  for (const path of paths)
    app.use(path, async (c, next) => {
      await next()
      const header = (name: string) => c.req.header(name)
      const { method } = c.req
      if (!isRead(method) || (path !== files && hasSecret(rawQuery(c), header))) return
      // HEAD varies alike, but has nothing to compress.
      const response = await compressed(c.res, method === 'HEAD' ? undefined : header('accept-encoding'))
      if (response === c.res) return
      c.res = undefined // else the headers of the two would be merged
      c.res = response
    })
}

/** Returns whether a request has a tap or a credential. Anything that looks like a tap counts, whole or not. */
function hasSecret(query: string, header: (name: string) => string | undefined): boolean {
  if (/picc|cmac|%/i.test(query)) return true
  return ['authorization', 'cookie', 'x-tap-challenge'].some((name) => header(name) !== undefined)
}

/**
 * GET /assets/pictures/{sha256}: a picture of a product under the hash of its bytes. So caches may keep it for ever. A picture that is in
 * memory costs no quota, because every page has some; each look into the database does.
 */
import type { Hono } from 'hono'
import type { CachedPictures } from '../../../assets/pictures/store.ts'
import type { PictureForm } from '../../../assets/pictures/limits.ts'
import { type ProductDetails, pictureHashes, withStoredPictures } from '../../../domain/product-details.ts'
import {
  errorResponse,
  methodRefused,
  openToAll,
  preflight,
  quotaHeaders,
  readMethods,
  taggedResponse,
} from '../../../http/responses.ts'
import { picturesPrefix } from '../../../pages/item/picture.ts'
import { isRead, rateLimited, type Env, type RequestHelpers, type RouteSite } from '../request.ts'

export type PictureSite = RouteSite & {
  readonly pictureForms: Pick<CachedPictures, 'ready' | 'get' | 'known'>
}

export function pictureRoutes(app: Hono<Env>, helpers: RequestHelpers, { pictureForms, limiter }: PictureSite): void {
  app.options(`${picturesPrefix}*`, () => preflight(readMethods))
  app.all(`${picturesPrefix}*`, async (c) => {
    if (!isRead(c.req.method)) return methodRefused(readMethods)
    const hash = c.req.path.slice(picturesPrefix.length)
    if (!/^[0-9a-f]{64}$/.test(hash)) return errorResponse(404, noPicture)
    const ready = pictureForms.ready(hash)
    const quota = ready === undefined ? await helpers.consume(c, limiter) : undefined
    if (quota?.allowed === false) return rateLimited(quota)
    const headers = quotaHeaders(quota)
    try {
      const form = ready ?? (await pictureForms.get(hash))
      return form === null ? errorResponse(404, noPicture, headers) : respond(form, hash, c.req.header('if-none-match'))
    } catch (error) {
      const { status, message } = helpers.faultOf(error, c)
      return errorResponse(status, message, headers)
    }
  })
}

const noPicture = 'There is no picture under this hash.'

/** The quota is that of one client, and caches keep the answer for all. */
function respond({ type, body }: PictureForm, hash: string, ifNoneMatch: string | undefined): Response {
  const shared = { ...openToAll, ...pictureHeaders, ETag: `"${hash}"` }
  return taggedResponse(ifNoneMatch, new Uint8Array(body), shared, { 'Content-Type': type })
}

const pictureHeaders = {
  'Cache-Control': 'public, max-age=31536000, immutable',
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Resource-Policy': 'cross-origin',
  'Content-Security-Policy': "default-src 'none'; sandbox",
} as const

/** Leaves out the pictures that cannot be shown; all of them where the store does not answer. */
export async function withPictures(
  { pictureForms }: Pick<PictureSite, 'pictureForms'>,
  details: ProductDetails,
): Promise<ProductDetails> {
  const hashes = pictureHashes(details)
  const stored =
    hashes.length === 0 ? new Set<string>() : await pictureForms.known(hashes).catch(() => new Set<string>())
  return withStoredPictures(details, stored)
}

/**
 * GET {base_url}/api/product/01/{gtin}/21/{serial}, …/10/{batch}, …/01/{gtin} and /api/product/token/{tokenId}: public product information
 * as JSON-LD, without a tap (an addition to spec §4.5). It says nothing about the item in anybody's hands.
 */
import type { Hono } from 'hono'
import { etagOf } from '../../../http/etag.ts'
import { errorResponse, openToAll, taggedResponse } from '../../../http/responses.ts'
import { productDocument } from '../../../passport/public/document.ts'
import { parseSubjectPath, productRoot } from '../../../passport/public/subject.ts'
import { readRoute, type Env, type RequestHelpers } from '../request.ts'
import { readProduct, type ProductSite } from './records.ts'

export function productRoutes(app: Hono<Env>, helpers: RequestHelpers, site: ProductSite): void {
  readRoute(app, helpers, { prefix: `${productRoot}/`, limiter: site.limiter }, async (c, headers) => {
    const subject = parseSubjectPath(c.req.path.slice(productRoot.length))
    if (subject === null) return errorResponse(400, badPath, headers)
    const record = await readProduct(site, subject)
    if (record === null) return errorResponse(404, 'There is no product information under this link.', headers)
    const { baseUrl } = site
    const document = productDocument({ baseUrl, subject, ...record })
    const shared = { ...headers, ...openToAll, ETag: etagOf(document), 'Cache-Control': 'public, max-age=1' }
    const own = { 'Content-Type': 'application/ld+json' }
    return taggedResponse(c.req.header('if-none-match'), JSON.stringify(document), shared, own)
  })
}

const badPath =
  'The path must be /api/product/01/{gtin}/21/{serial}, /01/{gtin}/10/{batch}, /01/{gtin} or /token/{tokenId}, the GTIN with 14 digits and a right check digit.'

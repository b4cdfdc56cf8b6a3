/**
 * GET {base_url}/api/status/{purpose}/{list}: the status lists of signed passports (W3C Bitstring Status List 1.0; signing is an
 * addition of spec §9). `suspension` is set while an item is flagged or its seal is opened, and once it is RECYCLED, `revocation` once it
 * is RECYCLED. Lists are always signed, also after signing was switched off.
 */
import type { Hono } from 'hono'
import { LRUCache } from 'lru-cache'
import { etagOfText } from '../../../http/etag.ts'
import { negotiate, type SignedForm } from '../../../http/accept.ts'
import { errorResponse, openToAll, taggedResponse } from '../../../http/responses.ts'
import { didOf } from '../../../passport/did-document.ts'
import type { Issuer } from '../../../passport/signing/issuer.ts'
import type { Signer } from '../../../passport/signing/signer.ts'
import {
  statusListCredential,
  statusPurposes,
  type StatusBits,
  type StatusPurpose,
} from '../../../passport/signing/status-list.ts'
import { readRoute, type Env, type RequestHelpers, type RouteSite } from '../request.ts'

export type StatusRoutes = RouteSite & {
  readonly baseUrl: string
  readonly issuerName: string
  readonly issuer: Pick<Issuer, 'listSignerFor'>
  /** Returns the bits of a list, null when there is no such list. */
  readonly statusBits: (list: number) => Promise<StatusBits | null>
}

const prefix = '/api/status/'
/** Milliseconds for which a signed copy is served while no bit changes. */
const copyMs = 60_000
/** Copies in memory: four of each list, one for each purpose and form. */
const mostCopies = 200

export function statusRoutes(app: Hono<Env>, helpers: RequestHelpers, site: StatusRoutes): void {
  const { baseUrl, issuerName, issuer, statusBits, limiter, now = Date.now } = site
  const did = didOf(baseUrl)
  const copies = new LRUCache<string, Copy>({ max: mostCopies })

  readRoute(app, helpers, { prefix, limiter, headers: { Vary: 'Accept' } }, async (c, headers) => {
    const asked = parsePath(c.req.path)
    const signer = issuer.listSignerFor(did)
    const form = formFor(c.req.header('accept'), signer)
    const bits = asked === null || form === null ? null : await statusBits(asked.list)
    if (asked === null || form === null || bits === null) return errorResponse(404, noList, headers)
    const { text, etag } = await copyOf(asked, bits, form, signer)
    const shared = { ...headers, ...openToAll, ETag: etag, 'Cache-Control': 'public, max-age=1' }
    return taggedResponse(c.req.header('if-none-match'), text, shared, { 'Content-Type': form })
  })

  async function copyOf({ purpose, list }: Asked, bits: StatusBits, form: SignedForm, signer: Signer): Promise<Copy> {
    const key = `${purpose}/${list}/${form}`
    const at = now()
    const known = copies.get(key)
    if (known?.bits === bits && known.signer === signer && at >= known.at && at < known.at + copyMs) return known
    const issued = { did, name: issuerName }
    const credential = statusListCredential({ baseUrl, issuer: issued, purpose, list, set: bits[purpose], now: at })
    const text =
      form === 'application/vc+jwt'
        ? await signer.signJwt(credential)
        : JSON.stringify(await signer.addProof(credential, at))
    const made = { bits, signer, at, text, etag: etagOfText(text) }
    copies.set(key, made)
    return made
  }
}

type Asked = { readonly purpose: StatusPurpose; readonly list: number }
type Copy = {
  readonly bits: StatusBits
  readonly signer: Signer
  readonly at: number
  readonly text: string
  readonly etag: string
}

const noList = 'There is no such status list.'

function parsePath(path: string): Asked | null {
  const [name, number = '', ...rest] = path.slice(prefix.length).split('/', 3)
  const purpose = statusPurposes.find((known) => known === name)
  return purpose === undefined || rest.length > 0 || !/^[1-9][0-9]{0,5}$/.test(number)
    ? null
    : { purpose, list: Number(number) }
}

/** Chooses the form: an embedded proof unless the client names a JWS, because libraries fetch lists without a media type. Null: there are no keys. */
function formFor(accept: string | undefined, { forms }: Signer): SignedForm | null {
  const preferred = negotiate(accept ?? null, forms)
  if (preferred !== null && preferred !== 'application/ld+json') return preferred
  return forms.find((form) => form === 'application/vc') ?? forms[0] ?? null
}

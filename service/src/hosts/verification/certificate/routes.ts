/**
 * POST {base_url}/certificate returns a signed certificate, as PDF, `application/vc+jwt` or wallet pass, for the ticket of a tapped page.
 * GET {base_url}/check is the page that checks one in the browser. The certificate stands after the `#`, so that no server receives it.
 */
import type { Verdict } from '@touchstone/verdict'
import type { Hono } from 'hono'
import type { Minters } from '../../../assets/history.ts'
import type { Verdicts } from '../../../assets/verdicts.ts'
import { methodRefused, preflight, readMethods } from '../../../http/responses.ts'
import { errorCodes } from '../../../lib/error-codes.ts'
import { ServiceError } from '../../../lib/errors.ts'
import type { BrandTheme } from '../../../pages/brands/theme.ts'
import { certificatePath, checkPage, checkPath } from '../../../pages/certificate/check.ts'
import type { CertificateView } from '../../../pages/certificate/facts.ts'
import { signersAt, type PassView, type Wallet, type Wallets } from '../../../pages/certificate/wallets.ts'
import { faultNotice } from '../../../pages/notice.ts'
import { certificateOf, isCertifiable } from '../../../passport/certificate.ts'
import { didOf } from '../../../passport/did-document.ts'
import type { ItemKey } from '../../../domain/gs1/serial.ts'
import { linksOf } from '../../../passport/links.ts'
import type { Issuer } from '../../../passport/signing/issuer.ts'
import type { StatusIndex } from '../../../passport/signing/status-store.ts'
import type { TapTickets } from '../../../tap/tap-ticket.ts'
import { brandOfToken } from '../pages/item.ts'
import { connectTo, fileResponse, formRefused, pageResponse } from '../pages/response.ts'
import { beginPage, formFields } from '../pages/visit.ts'
import { codedFailure, isRead, type Env, type RequestHelpers, type RouteSite } from '../request.ts'

export type CertificateSite = RouteSite & {
  /** The public origin, without a slash at the end. */
  readonly baseUrl: string
  readonly issuerName: string
  readonly issuer: Pick<Issuer, 'signerFor'>
  readonly verdicts: Pick<Verdicts, 'answer' | 'byTag'>
  readonly items: { readonly itemOfToken: (tokenId: bigint) => Promise<ItemKey | null> }
  readonly statusIndexOf: (tokenId: bigint) => Promise<StatusIndex>
  /** Undefined where no tap can be verified. */
  readonly certificateTickets: TapTickets | undefined
  readonly pages: { readonly publicRpcUrl: string | null; readonly themes: readonly BrandTheme[] }
  /** Names the brand of a pass. */
  readonly minters: Minters
  /** Undefined where no certificate comes as a pass. */
  readonly wallets?: Wallets | undefined
}

export function certificateRoutes(app: Hono<Env>, helpers: RequestHelpers, site: CertificateSite): void {
  const { baseUrl, issuerName, issuer, verdicts, items, certificateTickets, pages, now = Date.now } = site
  const did = didOf(baseUrl)

  app.options(checkPath, () => preflight(readMethods))
  app.all(checkPath, async (c) => {
    const { headers, context, limited } = await beginPage(c, helpers, site.limiter, checkPath)
    if (!isRead(c.req.method)) return methodRefused(readMethods, headers)
    if (limited !== null) return limited
    const { publicRpcUrl } = pages
    const html = checkPage(context, { did, publicRpcUrl })
    return pageResponse(context, { status: 200, html, connect: connectTo(publicRpcUrl) }, headers)
  })

  app.all(certificatePath, async (c) => {
    const { headers, context, limited, answer: refuse } = await beginPage(c, helpers, site.tapLimiter, null)
    if (c.req.method !== 'POST') return formRefused(c, context, headers)
    if (limited !== null) return limited
    const signer = issuer.signerFor(did)
    try {
      const fields = await formFields(c, 4_096)
      const as = fields?.get('as')
      const signers = signersAt(site.wallets, now())
      if (typeof as === 'string' && !allForms.includes(as))
        return codedFailure(new ServiceError('INVALID_ARGUMENT', formsMessage(signers)), headers)
      if ((as === 'apple' || as === 'google') && signers[as] === null) {
        const { meaning, remedy, rest } = errorCodes.PASS_NOT_OFFERED
        return /\bjson\b/i.test(c.req.header('accept') ?? '')
          ? codedFailure(new ServiceError('PASS_NOT_OFFERED', `${meaning} ${remedy}`), headers)
          : refuse(rest, { kind: 'passNotOffered' })
      }
      const tap = (await certificateTickets?.parse(fields?.get('ticket') ?? null)) ?? null
      if (fields === null || tap === null || !signer.forms.includes('application/vc+jwt'))
        return refuse(400, { kind: 'certificateExpired' })
      const [{ asset: answer }, item] = await Promise.all([verdicts.byTag(tap.tagHash), items.itemOfToken(tap.tokenId)])
      if (answer?.verdict.token_id !== String(tap.tokenId) || !isCertifiable(answer.verdict, answer.flags))
        return refuse(409, { kind: 'certificateRefused' })
      const { verdict } = answer
      const at = await site.statusIndexOf(tap.tokenId)
      const certificate = certificateOf({ baseUrl, did, verdict, item, at, tapCounter: tap.tapCounter, now: now() })
      const jws = await signer.signJwt(certificate)
      if (as === 'jwt') return fileResponse(jws, { type: 'application/vc+jwt', name: `${fileName}.jwt` }, headers)
      const view = {
        ...certificate.credentialSubject.assetStatus,
        issuerName,
        did,
        jws,
        item,
        name: verdict.untrusted?.name,
        at: Date.parse(certificate.validFrom) / 1000,
        checkUrl: `${baseUrl}${checkPath}`,
      }
      // Each library is loaded with the first file that needs it, because most visits need none.
      if (as === 'apple' && signers.apple !== null) {
        const { applePass } = await import('../../../pages/certificate/apple.ts')
        const pass = await applePass(context, await passView(site, verdict, view), signers.apple)
        return fileResponse(pass, { type: 'application/vnd.apple.pkpass', name: `${fileName}.pkpass` }, headers)
      }
      if (as === 'google' && signers.google !== null) {
        const { googleLink, googlePage } = await import('../../../pages/certificate/google.ts')
        const link = await googleLink(context, await passView(site, verdict, view), signers.google)
        return pageResponse(context, { status: 200, html: googlePage(context, link) }, headers)
      }
      const { certificatePdf } = await import('../../../pages/certificate/pdf.ts')
      const pdf = await certificatePdf(context, view)
      return fileResponse(pdf, { type: 'application/pdf', name: `${fileName}.pdf` }, headers)
    } catch (error) {
      const { code, status } = helpers.faultOf(error, c)
      return refuse(status, faultNotice(code, null))
    }
  })
}

const fileName = 'touchstone-certificate'
const allForms: readonly string[] = ['pdf', 'jwt', 'apple', 'google']

function formsMessage(signers: Wallets): string {
  const offered = allForms.filter((form) => !(form in signers) || signers[form as Wallet] !== null)
  return `The field as names one form of the certificate: ${offered.join(', ')}. Left out, it is pdf.`
}

/** Adds the brand in the operator's list, and the page of the item, which a pass shows. */
async function passView(site: CertificateSite, verdict: Verdict, view: CertificateView): Promise<PassView> {
  const { item } = view
  const theme = await brandOfToken(site, { verdict, item })
  const { page } = linksOf(site.baseUrl, { tokenId: verdict.token_id, item })
  return { ...view, brand: theme?.name ?? null, page }
}

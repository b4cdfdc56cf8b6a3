/**
 * GET {base_url}/t/{transferId}: the page of a standing offer. The owner shows it to the other side as a QR code or a link (spec §4.9). Its
 * address holds the id of the offer and nothing more: who may accept is decided by the contract.
 */
import { isSealOpened } from '@touchstone/verdict'
import type { Hono } from 'hono'
import type { Verdicts } from '../../../assets/verdicts.ts'
import { clampSeconds } from '../../../domain/chain-index.ts'
import { parseTransferId, type TransferId } from '../../../ownership/transfer-id.ts'
import { methodRefused, preflight, readMethods } from '../../../http/responses.ts'
import { faultNotice, type Notice } from '../../../pages/notice.ts'
import { offerPage } from '../../../pages/ownership/offer.ts'
import { offersPrefix } from '../../../pages/ownership/wallet-form.ts'
import { pagePath } from '../../../passport/links.ts'
import { isRead, type Env, type RequestHelpers, type RouteSite } from '../request.ts'
import { brandOfToken, type ItemSite } from './item.ts'
import { connectTo, pageResponse } from './response.ts'
import type { TransferSite } from './transfer.ts'
import { beginPage } from './visit.ts'

export type OfferSite = RouteSite &
  Pick<TransferSite, 'pageTransfers'> &
  Pick<ItemSite, 'baseUrl' | 'items' | 'pages' | 'minters'> & {
    readonly verdicts: Pick<Verdicts, 'answer'>
  }

export function offerRoute(app: Hono<Env>, helpers: RequestHelpers, site: OfferSite): void {
  const steps = site.pageTransfers?.steps
  app.options(`${offersPrefix}*`, () => preflight(readMethods))
  app.all(`${offersPrefix}*`, async (c) => {
    const { headers, context, limited, answer } = await beginPage(c, helpers, site.tapLimiter, c.req.path)
    if (!isRead(c.req.method)) return methodRefused(readMethods, headers)
    if (limited !== null) return limited
    const transferId = parseTransferId(c.req.path.slice(offersPrefix.length))
    if (transferId === null || steps === undefined) return answer(404, { kind: 'offerOver' })
    try {
      const shown = await read(steps, transferId)
      if ('kind' in shown) return answer(404, shown)
      const [html, font] = [offerPage(context, shown), shown.theme?.hasTypeface]
      return pageResponse(context, { status: 200, html, font, connect: connectTo(null) }, headers)
    } catch (error) {
      const { code, status } = helpers.faultOf(error, c)
      return answer(status, faultNotice(code, 'untapped'))
    }
  })

  async function read(
    steps: NonNullable<typeof site.pageTransfers>['steps'],
    transferId: TransferId,
  ): Promise<Notice | Parameters<typeof offerPage>[1]> {
    const { id, tokenId } = transferId
    const [offer, known, item] = await Promise.all([
      steps.view(transferId),
      site.verdicts.answer(tokenId),
      site.items.itemOfToken(tokenId).catch(() => null),
    ])
    if (known === null) return { kind: 'offerOver' }
    const record = pagePath(tokenId, item)
    if (offer.status === 'over') return { kind: 'offerOver', record }
    if (offer.status === 'expired') return { kind: 'offerExpired', record }
    const { _warning, ...product } = known.verdict.untrusted ?? { _warning: '' }
    return {
      transferId: id,
      // The verdict may be of a later block than the offer: the graver one counts.
      isHeld: offer.status === 'held' || known.verdict.flagged,
      tampered: isSealOpened(known),
      until: Number(clampSeconds(offer.until)),
      product,
      item,
      tokenId: String(tokenId),
      path: `${offersPrefix}${id}`,
      link: `${site.baseUrl}${offersPrefix}${id}`,
      record,
      verdictPath: `/api/asset/${tokenId}`,
      theme: await brandOfToken(site, { verdict: known.verdict, item }),
      passkeys: site.pages.ownership.has('passkey'),
      publicRpcUrl: site.pages.publicRpcUrl,
    }
  }
}

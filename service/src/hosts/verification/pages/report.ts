/**
 * POST {base_url}/report: a visitor says that an item does not look like its record. The form of a page that was shown after a fresh tap has
 * the ticket for it, so that another site cannot send it. Nothing of the visitor is kept.
 */
import type { Hono } from 'hono'
import type { DifferenceReports } from '../../../assets/difference-reports.ts'
import type { Log } from '../../../lib/log.ts'
import { reportPath } from '../../../pages/item/compare.ts'
import { roles } from '../../../pages/verdict/situation.ts'
import type { TapTickets } from '../../../tap/tap-ticket.ts'
import type { Env, RequestHelpers, RouteSite } from '../request.ts'
import { formRefused } from './response.ts'
import { beginPage, formFields } from './visit.ts'

export type ReportSite = RouteSite & {
  /** Undefined where no tap can be verified. */
  readonly reportTickets: TapTickets | undefined
  readonly differences: Pick<DifferenceReports, 'add'>
  readonly log: Log
}

/** A note of 300 characters, percent-encoded, and a ticket. */
const maxBytes = 8_192

export function reportRoute(app: Hono<Env>, helpers: RequestHelpers, site: ReportSite): void {
  const { reportTickets, differences, tapLimiter, log } = site
  app.all(reportPath, async (c) => {
    const { headers, context, limited, answer } = await beginPage(c, helpers, tapLimiter, null)
    if (c.req.method !== 'POST') return formRefused(c, context, headers)
    if (limited !== null) return limited
    let role: (typeof roles)[number] = 'new'
    try {
      const fields = await formFields(c, maxBytes)
      role = roles.find((one) => one === fields?.get('for')) ?? 'new'
      const tap = (await reportTickets?.parse(fields?.get('ticket') ?? null)) ?? null
      if (fields === null || tap === null) return answer(400, { kind: 'reportExpired' })
      const outcome = await differences.add({ ...tap, role, note: fields.get('note') ?? '' })
      const about = { tokenId: String(tap.tokenId), role }
      if (outcome === 'stored') log.warn('visitor reports a difference', about)
      if (outcome === 'full') {
        log.warn('difference report not kept', { ...about, reason: 'too many are open' })
        return answer(409, { kind: 'reportsFull', role })
      }
    } catch (error) {
      return answer(helpers.faultOf(error, c).status, { kind: 'fault' })
    }
    return answer(200, { kind: 'reported', role })
  })
}

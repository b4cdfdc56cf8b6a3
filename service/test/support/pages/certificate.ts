/** Certificates of a check, as a visitor asks for them after a tap. */
import type { PageWorld } from './pages.ts'

/** The ticket of the form for a certificate in a tapped page; empty: there is none. */
export const ticketIn = (page: string) => /name="ticket" value="([^"]+)" \/>\s*<h3>/.exec(page)?.[1] ?? ''

/** Opens a tapped link and asks for the certificate of that tap. */
export async function certify(
  world: PageWorld,
  tapped: string,
  { as = 'jwt', lang = 'en' }: { as?: 'pdf' | 'jwt' | 'apple' | 'google'; lang?: string } = {},
): Promise<Response> {
  const page = await (await fetch(tapped, { headers: { Accept: 'text/html' } })).text()
  return sendTicket(world, { ticket: ticketIn(page), as }, { lang })
}

export function sendTicket(
  world: PageWorld,
  fields: Record<string, string>,
  { headers = {}, lang = 'en' }: { headers?: Record<string, string>; lang?: string } = {},
): Promise<Response> {
  return world.get(`/certificate?lang=${lang}`, { method: 'POST', body: new URLSearchParams(fields), headers })
}

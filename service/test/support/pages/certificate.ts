/** Certificates of a check, as a visitor asks for them after a tap. */
import sharp from 'sharp'
import type { CertificateView } from '../../../src/pages/certificate/facts.ts'
import { qrPath } from '../../../src/pages/qr.ts'
import type { PageWorld } from './pages.ts'

/** The view of a certificate with the longest token id; its name and its signature are the test's. */
export const certificateView = (contract: string): Omit<CertificateView, 'name' | 'jws'> => ({
  issuerName: 'Example Verifier',
  did: 'did:web:verify.example',
  checkUrl: 'https://verify.example/check',
  item: { gtin: '09520003000001', serial: 'S7-1182' },
  state: 'CLAIMED',
  tapCounter: 17,
  at: 1_795_168_212,
  chainRef: {
    chainId: 84_532,
    contract,
    tokenId: '9'.repeat(78),
    blockNumber: 31_337,
    blockHash: `0x${'ab'.repeat(32)}`,
  },
})

/** Returns a ticket with another signature. */
export const forgeTicket = (ticket: string) => `${ticket.slice(0, -2)}${ticket.endsWith('AA') ? 'BA' : 'AA'}`

/** The ticket of the form for a certificate in a tapped page; empty: there is none. */
export const ticketIn = (page: string) => /name="ticket" value="([^"]+)" \/>\s*<h3>/.exec(page)?.[1] ?? ''

/** Returns the page of an address, as a browser gets it. */
export const pageAt = async (url: string) => (await fetch(url, { headers: { Accept: 'text/html' } })).text()

/** Opens a tapped link and asks for the certificate of that tap. */
export async function certify(
  world: PageWorld,
  tapped: string,
  { as = 'jwt', lang = 'en' }: { as?: 'pdf' | 'jwt' | 'apple' | 'google'; lang?: string } = {},
): Promise<Response> {
  return sendTicket(world, { ticket: ticketIn(await pageAt(tapped)), as }, { lang })
}

export function sendTicket(
  world: PageWorld,
  fields: Record<string, string>,
  { headers = {}, lang = 'en' }: { headers?: Record<string, string>; lang?: string } = {},
): Promise<Response> {
  return world.get(`/certificate?lang=${lang}`, { method: 'POST', body: new URLSearchParams(fields), headers })
}

/** Returns the certificate of a fresh tap on an item, as a JWS. */
export const certificateOf = async (world: PageWorld, name: Parameters<PageWorld['tapped']>[0]): Promise<string> =>
  (await certify(world, await world.tapped(name))).text()

export const payloadOf = (jws: string) =>
  JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>

/** A picture of the code of a paper, with six pixels for each module. */
export function codeOf(link: string) {
  const { path, modules } = qrPath(link, 'L')
  const size = modules + 8
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path d="${path}"/></svg>`
  return { picture: sharp(Buffer.from(svg)).resize(size * 6, size * 6, { kernel: 'nearest' }), modules }
}

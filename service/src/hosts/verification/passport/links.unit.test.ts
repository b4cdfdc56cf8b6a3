/** The resolver while the chain cannot be read: it does not answer that something is unknown. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chainUnavailable, ServiceError } from '../../../lib/errors.ts'
import { resolveLinkRequest, type LinkSite } from './links.ts'

const details = `0x${'2'.repeat(64)}` as const
const texts = new Map<string, string>([
  [`0x${'1'.repeat(64)}`, JSON.stringify({ details })],
  [details, JSON.stringify({ batch: 'L-1', recycling: { text: 'Bring it back.' } })],
])
const site: LinkSite = {
  baseUrl: 'https://a.example',
  contract: `0x${'c'.repeat(40)}`,
  items: { tokenOfItem: async () => 7n, hasGtin: async () => true },
  classes: { itemsOfClass: async () => [{ tokenId: 7n, metadataHash: `0x${'1'.repeat(64)}` }] },
  metadataTexts: { get: async (hash) => texts.get(hash) },
  metadata: { stored: async (hash) => texts.get(hash) },
  reader: { read: async () => Promise.reject(chainUnavailable('no provider answers')) },
  history: () => Promise.reject(new Error('No history is asked for.')),
  issuer: { signerFor: () => ({ forms: [] }) as unknown as ReturnType<LinkSite['issuer']['signerFor']> },
}
const ask = (path: string, linkType: string) =>
  resolveLinkRequest(site, { path, query: `linkType=${linkType}`, accept: undefined })

describe('the resolver while the chain cannot be read', () => {
  for (const [path, linkType] of [
    ['/01/09520123456788/10/L-1', 'linkset'],
    ['/01/09520123456788/10/L-1', 'gs1:pip'],
    ['/01/09520123456788', 'gs1:recyclingInfo'],
    ['/01/09520123456788/21/S1', 'gs1:recyclingInfo'],
  ] as const)
    it(`does not say that ${linkType} of ${path} is unknown`, async () => {
      await assert.rejects(ask(path, linkType), (error) => error instanceof ServiceError && error.status === 502)
    })

  it('gives the linkset of an item, which does not depend on the chain', async () => {
    assert.equal((await ask('/01/09520123456788/21/S1', 'linkset'))?.status, 200)
  })
})

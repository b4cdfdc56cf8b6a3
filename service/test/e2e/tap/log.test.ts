/** Taps over HTTP reach the back office (GraphQL), with the country that a trusted proxy names. */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { newApiKey } from '../../../src/access/api-keys.ts'
import { keepSecret } from '../../support/evidence.ts'
import { boundTag, demoBatchOf } from '../../support/tap/bound.ts'
import { useOpened } from '../../support/opened.ts'
import { until } from '../../support/wait.ts'
import { startWorld } from '../../support/world.ts'

type Tap = { outcome: string; country: string | null; counter: number | null; product: { name: string } | null }

describe('the back office', () => {
  const world = useOpened(() =>
    startWorld({ env: { TRUSTED_PROXIES: '127.0.0.1', TAP_COUNTRY_HEADER: 'CF-IPCountry' } }),
  )
  let key: string
  before(async () => {
    const { text, hash } = newApiKey()
    await world.components.apiKeys.create({ hash, name: 'back office', scopes: ['taps'] })
    keepSecret(text)
    key = text
  })

  async function ask<Data>(query: string): Promise<Data> {
    const response = await fetch(`${world.urls.graphql}/graphql`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${key}` },
      body: JSON.stringify({ query }),
    })
    const { data, errors } = (await response.json()) as { data: Data; errors?: unknown }
    assert.equal(errors, undefined)
    return data
  }

  it('sees fresh, repeated, replayed and forged taps, of pages and of programs', async () => {
    const batch = await demoBatchOf(world, 'log')
    const { tag, tokenId } = await boundTag(world, batch, { name: 'Tapped Watch' })
    const [skipped, first, second] = [tag.next(), tag.next(), tag.next()]
    const query = ({ picc, cmac }: typeof first) => `?picc=${picc}&cmac=${cmac}`
    const from = (country: string) => ({ headers: { 'CF-IPCountry': country } })
    await world.get(`/api/verify${query(first)}`, from('FR'))
    await world.get(`/token/${tokenId}${query(first)}`, from('FR'))
    await world.get(`/api/verify${query(second)}`, from('JP'))
    await world.get(`/api/verify${query(skipped)}`)
    await world.get(`/api/verify${query({ picc: second.picc, cmac: '0123456789ABCDEF' })}`)
    await world.get(`/api/verify${query(tag.next())}`, { method: 'HEAD' })
    let taps: Tap[] = []
    await until(async () => {
      const { taps: found } = await ask<{ taps: { edges: { node: Tap }[] } }>(
        '{ taps { edges { node { outcome country counter product { name } } } } }',
      )
      taps = found.edges.map(({ node }) => node)
      return taps.length === 5 && taps.some(({ product }) => product !== null)
    })
    const watch = { name: 'Tapped Watch' }
    assert.deepEqual(
      taps.toSorted((a, b) => a.outcome.localeCompare(b.outcome) || (a.counter ?? 0) - (b.counter ?? 0)),
      [
        { outcome: 'COUNTERFEIT_SUSPECTED', country: null, counter: null, product: null },
        { outcome: 'FRESH', country: 'FR', counter: 2, product: watch },
        { outcome: 'FRESH', country: 'JP', counter: 3, product: watch },
        { outcome: 'REPEATED', country: 'FR', counter: 2, product: watch },
        { outcome: 'REPLAYED', country: null, counter: 1, product: watch },
      ],
    )
    const { tapAnomalies } = await ask<{ tapAnomalies: unknown }>(
      '{ tapAnomalies { edges { node { kind countries product { name } } } } }',
    )
    assert.deepEqual(tapAnomalies, {
      edges: [{ node: { kind: 'TWO_PLACES', countries: ['FR', 'JP'], product: watch } }],
    })
  })
})

/** The country of a client, as a trusted proxy names it. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { clientCountries } from './client-country.ts'

describe('the country of a client', () => {
  const countryOf = clientCountries('CF-IPCountry', ['10.0.0.0/8'])
  const header = (value: string) => (name: string) => (name === 'cf-ipcountry' ? value : undefined)

  it('comes from a trusted proxy only', () => {
    assert.equal(countryOf('10.1.2.3', header('fr')), 'FR')
    assert.equal(countryOf('::ffff:10.1.2.3', header(' JP ')), 'JP')
    for (const peer of ['192.0.2.1', undefined, '']) assert.equal(countryOf(peer, header('FR')), undefined)
  })

  it('is two letters; anything else is none', () => {
    for (const value of ['', 'XX', 'T1', 'FRA', 'F', '=A', 'FR,DE'])
      assert.equal(countryOf('10.1.2.3', header(value)), undefined)
  })

  it('is none without a header or proxies', () => {
    assert.equal(clientCountries(null, ['10.0.0.0/8'])('10.1.2.3', header('FR')), undefined)
    assert.equal(clientCountries('CF-IPCountry', [])('10.1.2.3', header('FR')), undefined)
  })
})

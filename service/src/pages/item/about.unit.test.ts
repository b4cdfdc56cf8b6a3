import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { markupOf } from '../html.ts'
import { placesFor } from '../verdict/card.ts'
import { careCard, makerWords } from './about.ts'

const english = { language: 'en', chosen: false, assets: '/assets/x' } as const

describe('the words of a maker', () => {
  it('have a language of their own, so that the labels beside them are read in that of the page', () => {
    const details = {
      language: 'it',
      care: ['Panno asciutto.'],
      repair: { text: 'In bottega.', url: 'https://maker.example/' },
      materials: [{ name: 'Pelle', percent: '82.5', country: 'IT' }],
    }
    const product = { name: 'Borsa', description: 'Grande.', brand: 'B', sku: 'S', size: 'G', origin: 'IT' }
    const cards = [
      makerWords(english, { product, country: 'IT', details }, false),
      careCard(english, { details }, placesFor(english, {})),
    ]
    const page = cards.map((card) => (card ? markupOf(card) : '')).join('')
    const marked = Array.from(page.matchAll(/ lang="it">([^]*?)<\/bdi>/g), ([, text]) => text)
    assert.deepEqual(marked, 'Borsa|Grande.|B|S|G|IT|Panno asciutto.|In bottega.|Pelle'.split('|'))
  })
})

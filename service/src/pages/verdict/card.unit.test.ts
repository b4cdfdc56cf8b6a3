import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { markupOf } from '../html.ts'
import { plainVerdict } from './card.ts'

describe('plainVerdict', () => {
  for (const [title, isSmall] of [
    ['Record only', false],
    ['Not genuine', false],
    ['Zurückgerufen', true],
    ['Authentique', true],
    ['Nothing is registered under this number', true],
  ] as const)
    it(`sets «${title}» ${isSmall ? 'smaller, so that no word breaks on a narrow screen' : 'in full size'}`, () => {
      const page = markupOf(plainVerdict({ tone: 'none', title, text: '' }))
      assert.equal(page.includes('class="word tone-none long"'), isSmall)
    })
})

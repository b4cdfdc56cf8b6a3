/** Hostile product metadata, minted for real: no listed code point leaves the service, and no supplier text stands outside `untrusted` (spec §2.3). */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import type { Verdict } from '@touchstone/verdict'
import { startWorld, type World } from './_world.ts'

type Vector = { id?: string; name?: string; input: string; mustNotContain?: string[]; field?: string; kind: string }
const file = new URL('../../verdict/test-data/hostile-text.json', import.meta.url)
const { vectors } = JSON.parse(readFileSync(file, 'utf8')) as { vectors: Vector[] }
const marker = 'MARKER-7F3A'

describe('hostile metadata at the keyless read', () => {
  let world: World
  before(async () => {
    world = await startWorld()
  })
  after(() => world.end())

  for (const [index, { input, mustNotContain = [], field }] of vectors.entries()) {
    if (!input.isWellFormed()) continue // registration refuses half a surrogate pair
    it(`vector ${index + 1} (${JSON.stringify(input).slice(0, 40)}) leaves cleaned, inside \`untrusted\` only`, async () => {
      const text = `${input} ${marker}`
      const id = await world.mint({ [field === 'description' ? 'description' : 'name']: text, brand: text })
      const body = await (await world.get(`/api/asset/${id}`)).text()
      const { untrusted, ...rest } = JSON.parse(body) as Verdict
      assert.ok(JSON.stringify(untrusted).includes(marker))
      assert.ok(!JSON.stringify(rest).includes(marker))
      const points = Array.from(body, (char) => char.codePointAt(0) ?? 0)
      for (const range of mustNotContain) {
        const [from = 0, to = from] = range.split('-').map((hex) => Number.parseInt(hex.replace(/^U\+/, ''), 16))
        assert.ok(!points.some((point) => point >= from && point <= to), `${range} left the service`)
      }
      assert.ok(!/\\u00[01]|\\u007f/.test(body), 'an escaped control character left the service')
    })
  }

  it('never reaches the log', () => {
    assert.ok(!world.lines.some((line) => line.includes(marker)))
  })
})

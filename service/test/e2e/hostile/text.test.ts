/** Hostile product metadata, minted for real: no listed code point leaves the service, and no supplier text stands outside `untrusted` (spec §2.3). */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Verdict } from '@touchstone/verdict'
import { assertClean, hostileTexts } from '../../support/fuzz/hostile-text.ts'
import { startWorld, type World } from '../../support/world.ts'

const marker = 'MARKER-7F3A'

describe('hostile metadata at the keyless read', () => {
  let world: World
  before(async () => {
    world = await startWorld()
  })
  after(() => world.end())

  for (const [index, { input, mustNotContain, field }] of hostileTexts.entries()) {
    it(`vector ${index + 1} (${JSON.stringify(input).slice(0, 40)}) leaves cleaned, inside \`untrusted\` only`, async () => {
      const text = `${input} ${marker}`
      const id = await world.mint({ [field === 'description' ? 'description' : 'name']: text, brand: text })
      const body = await (await world.get(`/api/asset/${id}`)).text()
      const { untrusted, ...rest } = JSON.parse(body) as Verdict
      assert.ok(JSON.stringify(untrusted).includes(marker))
      assert.ok(!JSON.stringify(rest).includes(marker))
      assertClean(body, { mustNotContain: mustNotContain ?? [] })
    })
  }

  it('never reaches the log', () => {
    assert.ok(!world.lines.some((line) => line.includes(marker)))
  })
})

/** The hostile texts of the client library's test data, and the check that a response lost their forbidden code points (spec §2.3). */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'

export type HostileText = {
  readonly id?: string
  readonly input: string
  readonly expected?: string
  readonly alsoAccept?: readonly string[]
  readonly mustNotContain?: readonly string[]
  readonly field?: string
  readonly soft?: boolean
}

const file = new URL('../../../../verdict/test-data/hostile-text.json', import.meta.url)
const { vectors } = JSON.parse(readFileSync(file, 'utf8')) as { vectors: HostileText[] }

/** The texts that can be registered: registration rejects half a surrogate pair. */
export const hostileTexts: readonly HostileText[] = vectors.filter(({ input }) => input.isWellFormed())

/** Fails when a response holds a forbidden code point, or a control character in escaped form. */
export function assertClean(response: string, { mustNotContain = [] }: Pick<HostileText, 'mustNotContain'>): void {
  const points = new Set(Array.from(response, (char) => char.codePointAt(0) ?? 0))
  for (const range of mustNotContain) {
    const [from = 0, to = from] = range.split('-').map((hex) => Number.parseInt(hex.replace(/^U\+/, ''), 16))
    for (const point of points) assert.ok(point < from || point > to, `${range} left the service`)
  }
  assert.ok(!/\\u00[01]|\\u007f/i.test(response), 'an escaped control character left the service')
}

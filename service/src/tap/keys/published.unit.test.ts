import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { parseHex } from '../../lib/bytes.ts'
import { isPublishedKey } from './published.ts'

describe('the published keys', () => {
  const page = readFileSync(new URL('../../../../docs/taps-and-tags.md', import.meta.url), 'utf8')

  it('have every master of our own documents, whose examples import demo batches', () => {
    const keys = [...page.matchAll(/^printf '(.+)' > /gm)].flatMap(
      ([, lines = '']) => lines.match(/[\dA-F]{32,64}/g) ?? [],
    )
    assert.ok(keys.length >= 13)
    for (const key of keys) assert.ok(isPublishedKey(parseHex(key) ?? assert.fail(key)), key)
    for (const [command] of page.matchAll(/^touchstone tag batch import .*$/gm)) assert.match(command, / --demo /)
  })
})

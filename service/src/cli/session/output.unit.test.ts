import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseHead } from '../tag/import/rows.ts'
import { CommandError, formatError } from './output.ts'

describe('the error of a command', () => {
  it('moves no cursor and sets no title, whatever the file of another says', () => {
    const head = ['uid', '\u001b]0;owned\u0007\u001b[2J\u009b31m\u202eall is well']
    const error = (() => {
      try {
        return parseHead(head, { batch: 'b' })
      } catch (thrown) {
        return thrown
      }
    })()
    const text = formatError(error)
    assert.match(text, /^The first line names a column ".*all is well"; columns are uid, /)
    assert.doesNotMatch(text, /[\p{Cc}\p{Cf}]/u)
  })

  it('keeps its lines', () => {
    const lines = 'Two rows must be corrected.\n  line 3: …\n\tline 4: …'
    assert.equal(formatError(new CommandError(lines)), lines)
  })
})

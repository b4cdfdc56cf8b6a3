import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { compare, fails, pin, reportOf, undecided } from './report.ts'

const agrees = compare('a', 1, 1)
const differs = compare('b', 1, 2)
const open = undecided('c', 1, 'not known')

describe('a report', () => {
  it('agrees only when all checks do, and differs as soon as one does', () => {
    assert.deepEqual(reportOf([agrees, agrees]), { ok: true, outcome: 'agrees', checks: [agrees, agrees] })
    for (const checks of [[differs], [agrees, differs], [open, differs], [differs, open, agrees]])
      assert.deepEqual(reportOf(checks), { ok: false, outcome: 'differs', checks })
    for (const checks of [[open], [agrees, open], [open, open]])
      assert.deepEqual(reportOf(checks), { ok: false, outcome: 'undecided', checks })
  })

  it('keeps its checks when the list of the caller changes', () => {
    const checks = [agrees]
    const report = reportOf(checks)
    checks.push(differs)
    assert.deepEqual(report.checks, [agrees])
  })
})

describe('a check', () => {
  it('is ok for the same value of the same type', () => {
    for (const value of ['1', 1, true, null, '']) assert.equal(compare('x', value, value).ok, true)
    for (const [claimed, found] of [
      ['1', 1],
      [1, '1'],
      [undefined, null],
      [0, false],
      [[1], 1],
      ['A', 'a'],
    ] as const)
      assert.equal(compare('x', claimed, found).ok, false)
  })

  it('that cannot succeed, or cannot be made, says why', () => {
    assert.deepEqual(fails('x', 7, 'because'), { field: 'x', ok: false, claimed: '7', found: 'because' })
    assert.deepEqual(undecided('x', 7, 'because'), {
      field: 'x',
      ok: false,
      undecided: true,
      claimed: '7',
      found: 'because',
    })
  })

  it('of a pinned value takes hex of any case, and passes where one side is not known', () => {
    const unpinned = 'not pinned by the caller'
    assert.deepEqual(pin('x', '0xAB', '0xab'), { field: 'x', ok: true, claimed: '0xAB', found: '0xab' })
    assert.deepEqual(pin('x', '0xab', '0xAB'), { field: 'x', ok: true, claimed: '0xab', found: '0xAB' })
    assert.equal(pin('x', '0xab', '0xac').ok, false)
    assert.deepEqual(pin('x', undefined, '0xab'), { field: 'x', ok: true, claimed: unpinned, found: '0xab' })
    assert.deepEqual(pin('x', '0xab', undefined), { field: 'x', ok: true, claimed: '0xab', found: unpinned })
  })

  it('shows printable ASCII, at most 200 characters of it, and no content of objects', () => {
    assert.equal(fails('x', 'a b~', '').claimed, 'a b~')
    assert.equal(fails('x', '\u0007é\u{1f600}', '').claimed, '\\u0007\\u00e9\\ud83d\\ude00')
    assert.equal(fails('x', 'y'.repeat(200), '').claimed, 'y'.repeat(200))
    assert.equal(fails('x', 'y'.repeat(201), '').claimed, `${'y'.repeat(200)}…`)
    assert.equal(fails('x', 'y'.repeat(900), '').claimed, `${'y'.repeat(200)}…`)
    assert.equal(fails('x', { secret: 1 }, '').claimed, 'an object')
    assert.equal(fails('x', null, '').claimed, 'null')
  })
})

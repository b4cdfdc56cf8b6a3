/** Suites of a process of their own: what they open, and in which order they close it. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { testFolder } from './folder.ts'

/** Runs a suite with another in it. Returns the exit code of the process, and what was opened and closed. */
function run({ failsToOpen = '', failsToClose = '' } = {}) {
  const folder = testFolder()
  const file = join(folder, 'suite.mjs')
  writeFileSync(
    file,
    `import { appendFileSync } from 'node:fs'
    import { describe, it } from 'node:test'
    import { useOpened } from '${import.meta.resolve('./opened.ts')}'
    const write = (text) => appendFileSync('order', text + ' ')
    function opens(name, close) {
      useOpened(async () => {
        if (name === '${failsToOpen}') throw new Error('it cannot be opened')
        write('+' + name)
        return {
          async [close]() {
            await new Promise((resolve) => setImmediate(resolve))
            write('-' + name)
            if (name === '${failsToClose}') throw new Error('it cannot be closed')
          },
        }
      })
    }
    describe('outer', () => {
      opens('one', 'close')
      opens('two', 'end')
      opens('three', Symbol.asyncDispose)
      it('works', () => write('test'))
      describe('inner', () => {
        opens('four', 'close')
        it('works', () => write('test'))
      })
    })`,
  )
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { status } = spawnSync(process.execPath, [file], { cwd: folder, env, timeout: 240_000 })
  return { status, order: readFileSync(join(folder, 'order'), 'utf8').trim() }
}

describe('what a suite opened', () => {
  it('is closed in reverse order, behind what a suite within it opened', () =>
    assert.deepEqual(run(), { status: 0, order: '+one +two +three test +four test -four -three -two -one' }))

  it('is closed where another could not be opened, which is not closed', () =>
    assert.deepEqual(run({ failsToOpen: 'two' }), { status: 1, order: '+one -one' }))

  it('is closed where another fails to close', () =>
    assert.deepEqual(run({ failsToClose: 'three' }), {
      status: 1,
      order: '+one +two +three test +four test -four -three -two -one',
    }))
})

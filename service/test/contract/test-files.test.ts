/** Test files that share processes (`scripts/test-files.ts`): each is a test of its own, with its own hooks. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { failedFiles, queueFiles } from '../../../scripts/test-files.ts'

const reporter = fileURLToPath(new URL('../../../scripts/failed-files.ts', import.meta.url))

/** Files that write what happens to `order`. The second has what a test file may do at its top level. */
const sources = {
  'a.test.ts': "throw new Error('cannot be read')",
  'b.test.ts': `import { after, afterEach, before, describe, it } from 'node:test'
    import { appendFileSync } from 'node:fs'
    const write = (text) => appendFileSync('order', text + ' ')
    const opened = await new Promise((resolve) => setImmediate(resolve, 'opened'))
    write(opened)
    before(() => write('before'))
    afterEach(() => write('each'))
    after(() => write('after'))
    describe('one', () => it('fails', () => { write('one'); throw new Error() }))
    describe('two', () => it('works', () => write('two')))
    it('three', () => write('three'))`,
  'c.test.ts': `import { it } from 'node:test'
    import { appendFileSync } from 'node:fs'
    appendFileSync('order', 'next ')
    it('works', () => appendFileSync('order', 'four'))`,
}

describe('test files that share processes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'touchstone-files-'))
  after(() => rmSync(folder, { recursive: true }))
  let [own, queue] = ['', '']
  beforeEach(() => {
    own = mkdtempSync(join(folder, 'own-'))
    queue = mkdtempSync(join(folder, 'queue-'))
  })

  const write = (texts: Readonly<Record<string, string>>) =>
    Object.entries(texts).map(([name, source]) => {
      writeFileSync(join(own, name), source)
      return join(own, name)
    })
  /** Runs files of Node, and returns what happened, and what the reporter names. */
  function run(files: readonly string[], lanes = 1) {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const reporters = [`--test-reporter=${reporter}`, '--test-reporter-destination=failed']
    const args = ['--test', `--test-concurrency=${lanes}`, ...reporters, ...files]
    const { status } = spawnSync(process.execPath, args, { cwd: own, env, timeout: 120_000 })
    const read = (name: string) => readFileSync(join(own, name), 'utf8')
    return { status, order: read('order'), failed: read('failed').split('\n').filter(Boolean) }
  }

  it('run in turn with the hooks of each, behind one that fails too, and are named when they failed', () => {
    const files = write(sources)
    const written = queueFiles(files, 1, queue)
    assert.deepEqual(written, [join(queue, '000.test.mjs')], 'one file for Node')
    const { status, order, failed } = run(written)
    assert.equal(status, 1)
    assert.equal(
      order,
      'opened before one each two each three each each after next four', // the last «each» is that of the test that waits
    )
    assert.deepEqual(failed, files.slice(0, 2))
    assert.deepEqual(failedFiles(queue, failed), files.slice(0, 2))
  })

  it('run once each, whichever process takes them', () => {
    const names = Array.from({ length: 60 }, (_, at) => String(at))
    const files = write(
      Object.fromEntries(
        names.map((name) => [
          `${name}.test.ts`,
          `import { appendFileSync } from 'node:fs'; appendFileSync('order', '${name} ')`,
        ]),
      ),
    )
    const { status, order, failed } = run(queueFiles(files, 3, queue), 3)
    assert.deepEqual({ status, failed }, { status: 0, failed: [] })
    assert.deepEqual(order.trim().split(' ').toSorted(), names.toSorted())
  })

  it('run before the hooks of their process', () => {
    const works = (name: string) => `import { it } from 'node:test'
      import { appendFileSync } from 'node:fs'
      it('works', () => appendFileSync('order', '${name} '))`
    const [hooks = '', ...files] = write({
      'hooks.mjs': `import { after } from 'node:test'
        import { appendFileSync } from 'node:fs'
        after(() => appendFileSync('order', 'hooks '))`,
      'a.test.ts': works('a'),
      'b.test.ts': works('b'),
    })
    const { order } = run([`--import=${hooks}`, ...queueFiles(files, 1, queue)])
    assert.equal(order, 'a b hooks ')
  })

  it('run again where their process ended before they did, though nothing names them', () => {
    const files = write({
      'a.test.ts': `import { it } from 'node:test'
        import { writeFileSync } from 'node:fs'
        writeFileSync('order', '')
        it('fails', () => { throw new Error() })`,
      'b.test.ts': `import { it } from 'node:test'
        it('ends the process', () => process.kill(process.pid, 'SIGKILL'))`,
      'c.test.ts': `import { it } from 'node:test'
        it('works', () => {})`,
    })
    const { status, failed } = run(queueFiles(files, 1, queue))
    assert.equal(status, 1)
    assert.deepEqual(failedFiles(queue, failed), files)
  })

  it('fail where a file ends the process, as if all were well', () => {
    const files = write({
      'a.test.ts': "import { writeFileSync } from 'node:fs'; writeFileSync('order', ''); process.exit(0)",
      'b.test.ts': '',
    })
    const { status, failed } = run(queueFiles(files, 1, queue))
    assert.equal(status, 1)
    assert.deepEqual(failedFiles(queue, failed), files)
  })

  it('stay apart where one reads its arguments', () => {
    const files = write({ ...sources, 'd.test.ts': 'console.log(process.argv)' })
    assert.equal(queueFiles(files, 1, queue).length, 2)
  })
})

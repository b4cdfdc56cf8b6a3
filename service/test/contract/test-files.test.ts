/** Test files that share a process (`scripts/test-files.ts`): each is a test of its own, with its own hooks. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { groupFiles } from '../../../scripts/test-files.ts'
import { testFolder } from '../support/folder.ts'

const scriptOf = (name: string) => fileURLToPath(new URL(`../../../scripts/${name}`, import.meta.url))
const [failedFiles, failures, testProcess] = ['failed-files.ts', 'failures.ts', 'test-process.ts'].map(scriptOf)

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

describe('test files of one process', () => {
  const folder = testFolder()
  const files = Object.keys(sources).map((name) => join(folder, name))
  for (const [name, source] of Object.entries(sources)) writeFileSync(join(folder, name), source)
  const groups = join(folder, 'groups')
  mkdirSync(groups)
  const written = groupFiles(files, groups)

  /** Runs them as `npm test` does. */
  function run(...all: readonly string[]) {
    const { env, args } = runner(...all)
    return spawnSync(process.execPath, args, { cwd: folder, env, encoding: 'utf8', timeout: 240_000 })
  }

  function runner(...all: readonly string[]) {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    return { env, args: ['--test', `--import=${testProcess}`, ...all] }
  }

  it('are one file for Node', () => assert.deepEqual(written, [join(groups, '000.test.mjs')]))

  it('run in turn with the hooks of each, behind one that fails too, and are named with their errors when they failed', () => {
    const reporters = [
      `--test-reporter=${failedFiles}`,
      '--test-reporter-destination=failed',
      `--test-reporter=${failures}`,
    ]
    const { status, stdout } = run(...reporters, '--test-reporter-destination=stdout', ...written)
    assert.equal(status, 1)
    assert.equal(
      readFileSync(join(folder, 'order'), 'utf8'),
      'opened before one each two each three each each after next four', // the last «each» is that of the test that waits
    )
    assert.equal(readFileSync(join(folder, 'failed'), 'utf8'), `${files[0]}\n${files[1]}\n`)
    assert.match(
      stdout,
      /^✖ .*a\.test\.ts .*\nError: cannot be read[^]*\n✖ fails .*\nError[^✖]*\n\d+ tests, 2 failed\n$/,
    )
  })

  it('fail for an error that nothing catches, also after it', () => {
    writeFileSync(
      join(folder, 'e.test.ts'),
      `import { it } from 'node:test'
      it('leaves an error behind', async () => {
        void Promise.resolve().then(() => { throw new Error('left behind') })
        await new Promise((resolve) => setTimeout(resolve, 1))
      })`,
    )
    const { status, stdout } = run(...groupFiles([join(folder, 'e.test.ts')], groups))
    assert.equal(status, 1)
    assert.match(stdout, /left behind/)
  })

  it('have their temporary folders until their last hook, and not when the next one begins', () => {
    const helper = JSON.stringify(new URL('../support/folder.ts', import.meta.url).href)
    const [first, next] = [join(folder, 'f.test.ts'), join(folder, 'g.test.ts')]
    const uses = `import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
      import { after, it } from 'node:test'
      import { testFolder } from ${helper}
      const isThere = () => appendFileSync('folders', existsSync(readFileSync('made', 'utf8')) + ' ')
      it('works', () => {})`
    writeFileSync(first, `${uses}\nwriteFileSync('made', testFolder())\nafter(isThere)`)
    writeFileSync(next, `${uses}\nisThere()`)
    assert.equal(run(...groupFiles([first, next], groups)).status, 0)
    assert.equal(readFileSync(join(folder, 'folders'), 'utf8'), 'true false ')
  })

  it('end with their runner, also while a test waits for what has ended with it', async (t) => {
    await using server = createServer()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    writeFileSync(
      join(folder, 'h.test.ts'),
      `import { connect } from 'node:net'
      import { after, describe, it } from 'node:test'
      describe('a world', () => {
        after(() => new Promise(() => {}))
        it('waits', async () => {
          connect(${port}, '127.0.0.1')
          await new Promise((_, reject) => process.once('SIGTERM', () => reject(new Error('browser has ended'))))
        })
      })`,
    )
    const { env, args } = runner(...groupFiles([join(folder, 'h.test.ts')], groups))
    const runs = spawn(process.execPath, args, { cwd: folder, env, detached: true, stdio: 'ignore' })
    const signal = (name: NodeJS.Signals) => process.kill(-Number(runs.pid), name)
    let isEnded = false
    t.after(() => isEnded || signal('SIGKILL'))
    const [socket] = (await once(server, 'connection')) as [Socket]
    const ended = once(socket.resume(), 'close')
    signal('SIGTERM')
    await ended
    isEnded = true
  })

  it('stay apart where one reads its arguments', () => {
    writeFileSync(join(folder, 'd.test.ts'), 'console.log(process.argv)')
    assert.equal(groupFiles([...files, join(folder, 'd.test.ts')], groups).length, 2)
  })
})

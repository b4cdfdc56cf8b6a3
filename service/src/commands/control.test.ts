import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { addressFile, holderOf, runInService } from './control-client.ts'
import { openControl, type Door, type RunCommand } from './control.ts'

describe('the door of a data folder', () => {
  let dataDir: string
  before(async () => void (dataDir = await mkdtemp(join(tmpdir(), 'touchstone-control-'))))
  after(() => rm(dataDir, { recursive: true }))

  const echo: RunCommand = async (argv, { out, err, cwd }) => {
    out(`${cwd} ${argv.join('|')}`)
    err('a word aside')
    return 3
  }

  it('is not there when nobody holds the folder', async () => {
    assert.equal(await holderOf(dataDir), null)
    assert.equal((await ask(['x'])).exit, null)
  })

  it('carries a command to the holder and brings its words and its exit code back', async () => {
    await using door = await held()
    assert.deepEqual(await ask(['tag']), {
      exit: 1,
      out: [],
      err: [`touchstone: process ${process.pid} is at work on this data folder; repeat the command in a moment.`],
    })
    door.serve(echo)
    assert.equal(await holderOf(dataDir), process.pid)
    assert.deepEqual(await ask(['tag', 'größe', 'a b']), {
      exit: 3,
      out: ['/somewhere tag|größe|a b'],
      err: ['a word aside'],
    })
  })

  it('lets one process in, also when many ask at the same time', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => openControl(dataDir)))
    const doors = answers.flatMap((answer) => (answer.ok ? [answer.door] : []))
    assert.equal(doors.length, 1)
    for (const answer of answers) assert.ok(answer.ok || answer.pid === process.pid)
    await doors[0]?.close()
    await using door = await held()
    assert.ok(door)
  })

  it('opens again after its holder was killed', async () => {
    await writeFile(addressFile(dataDir), JSON.stringify({ pid: 1, port: 1, token: 'x'.repeat(64) }))
    assert.equal(await holderOf(dataDir), null)
    await using door = await held()
    door.serve(echo)
    assert.equal((await ask([])).exit, 3)
  })

  it('says what to do where nothing can be written, and lets the process end', async () => {
    const file = join(dataDir, 'a file')
    await writeFile(file, '')
    const control = JSON.stringify(new URL('control.ts', import.meta.url).href)
    const script = `import { openControl } from ${control}; await openControl(${JSON.stringify(file)}).catch((error) => console.log(error.message))`
    const argv = ['--input-type=module', '--eval', script]
    const { stdout } = await promisify(execFile)(process.execPath, argv, { timeout: 60_000 })
    assert.match(stdout, /^Nothing can be written to the data folder .* another DATA_DIR\.$/m)
  })

  it('is for those who can read the token, and the file is for its owner only', async () => {
    await using door = await held()
    door.serve(echo)
    assert.equal((await stat(addressFile(dataDir))).mode & 0o777, 0o600)
    const { port } = JSON.parse(await readFile(addressFile(dataDir), 'utf8')) as { port: number }
    for (const headers of [{}, { Authorization: 'Bearer wrong' }]) {
      const body = JSON.stringify({ argv: ['tag'], cwd: '/' })
      assert.equal((await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body })).status, 403)
    }
  })

  it('refuses an order that is none, and one without end', async () => {
    await using door = await held()
    door.serve(echo)
    const { port, token } = JSON.parse(await readFile(addressFile(dataDir), 'utf8')) as { port: number; token: string }
    const headers = { Authorization: `Bearer ${token}` }
    for (const body of ['{}', '{"argv":[1],"cwd":"/"}', 'no', JSON.stringify({ argv: ['x'.repeat(70_000)], cwd: '/' })])
      assert.equal((await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body })).status, 400)
  })

  it('tells the command when the one who asked is gone', async () => {
    await using door = await held()
    const asking = new AbortController()
    const told = Promise.withResolvers<void>()
    door.serve(async (_argv, { signal }) => {
      signal.addEventListener('abort', () => told.resolve())
      asking.abort()
      await told.promise
      return 1
    })
    await assert.rejects(ask(['import'], asking.signal), /The service ended before the command did/)
    await told.promise
  })

  it('tells the commands under way to stop, and waits for them, before it closes', async () => {
    const door = await held()
    const began = Promise.withResolvers<void>()
    door.serve((_argv, { signal, out }) => {
      began.resolve()
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          out('stopped after row 12')
          resolve(1)
        })
      })
    })
    const asked = ask(['import'])
    await began.promise
    await door.close()
    assert.deepEqual(await asked, { exit: 1, out: ['stopped after row 12'], err: [] })
    assert.equal(await holderOf(dataDir), null)
  })

  async function held(): Promise<Door> {
    const opened = await openControl(dataDir)
    if (!opened.ok) throw new Error(`process ${opened.pid} holds the folder`)
    return opened.door
  }

  async function ask(argv: string[], signal: AbortSignal = new AbortController().signal) {
    const [out, err]: [string[], string[]] = [[], []]
    const io = { out: (line: string) => out.push(line), err: (line: string) => err.push(line) }
    return { exit: await runInService(dataDir, argv, { ...io, cwd: '/somewhere', signal }), out, err }
  }
})

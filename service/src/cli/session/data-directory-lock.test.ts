import assert from 'node:assert/strict'
import { execFile, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici'
import { testFolder } from '../../../test/support/folder.ts'
import { serve } from '../../../test/support/http.ts'
import { until } from '../../../test/support/wait.ts'
import { addressFile, silenceMs } from './address-file.ts'
import { authorization, holderOf, proofOf, runInService } from './control-client.ts'
import { acquireDataFolder, tryAcquire, type DataDirectoryLock, type RunCommand } from './data-directory-lock.ts'

/** Runs a program in a network namespace of its own, as a container does. */
const namespace = { command: 'unshare', argv: ['--net', 'sh', '-c', 'ip link set lo up && exec "$0" "$@"'] }
const noNamespaces =
  spawnSync(namespace.command, [...namespace.argv, 'true']).status === 0
    ? false
    : 'a network namespace needs root, unshare and ip'

/** The address of the tested module, for the program text of another process. */
const module = JSON.stringify(new URL('data-directory-lock.ts', import.meta.url).href)

describe('the data directory lock', () => {
  const dataDir = testFolder()

  const echo: RunCommand = async (argv, { out, err, cwd }) => {
    out(`${cwd} ${argv.join('|')}`)
    err('a warning')
    return 3
  }

  it('is free when no process holds the folder', async () => {
    assert.equal(await holderOf(dataDir), null)
    assert.equal((await ask(['x'])).exit, null)
  })

  it('runs a command in the holder and returns its output and exit code', async () => {
    await using lock = await held()
    assert.deepEqual(await ask(['tag']), {
      exit: 1,
      out: [],
      err: [`touchstone: process ${process.pid} is at work on this data folder; repeat the command in a moment.`],
    })
    lock.serve(echo)
    assert.equal((await holderOf(dataDir))?.pid, process.pid)
    assert.deepEqual(await ask(['tag', 'größe', 'a b']), {
      exit: 3,
      out: ['/somewhere tag|größe|a b'],
      err: ['a warning'],
    })
  })

  it('is acquired by one of many concurrent callers', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => tryAcquire(dataDir)))
    const locks = answers.flatMap((answer) => (answer.ok ? [answer.lock] : []))
    assert.equal(locks.length, 1)
    for (const answer of answers) assert.ok(answer.ok || answer.holder.pid === process.pid)
    await locks[0]?.release()
    await using lock = await held()
    assert.ok(lock)
  })

  it('is acquired again after its holder was killed', async () => {
    await writeFile(addressFile(dataDir), JSON.stringify({ pid: 1, port: 1, token: 'x'.repeat(64) }))
    assert.equal(await holderOf(dataDir), null)
    await using lock = await held()
    lock.serve(echo)
    assert.equal((await ask([])).exit, 3)
  })

  it('is acquired although the process that removed the file of a killed one was killed, too', async () => {
    const text = JSON.stringify({ pid: 1, port: 1, token: 'y'.repeat(64) })
    await writeFile(addressFile(dataDir), text)
    const name = createHash('sha256').update(text).digest('hex').slice(0, 12)
    const claim = `${addressFile(dataDir)}.${name}.stale`
    await writeFile(claim, '')
    const longAgo = new Date(Date.now() - 60_000)
    await utimes(claim, longAgo, longAgo)
    await using lock = await held()
    assert.ok(lock)
  })

  it('is acquired by one of many concurrent callers after its holder was killed', async () => {
    for (let round = 0; round < 40; round++) {
      await writeFile(addressFile(dataDir), JSON.stringify({ pid: 1, port: 1, token: `${round}`.repeat(32) }))
      const answers = await Promise.all(Array.from({ length: 12 }, () => tryAcquire(dataDir)))
      const locks = answers.flatMap((answer) => (answer.ok ? [answer.lock] : []))
      for (const lock of locks) await lock.release()
      assert.equal(locks.length, 1, `round ${round}`)
    }
    const left = (await readdir(dataDir)).filter((name) => name.startsWith('control.json'))
    assert.deepEqual(left, [])
  })

  it('keeps out a process of another network namespace, and names the way on', { skip: noNamespaces }, async () => {
    await using lock = await held()
    lock.serve(echo)
    const before = await address()
    const script = `import { acquireDataFolder } from ${module}; await acquireDataFolder(${JSON.stringify(dataDir)}).then(() => console.log('acquired'), (error) => console.log(error.message)); process.exit()`
    const argv = [...namespace.argv, process.execPath, '--input-type=module', '--eval', script]
    const { stdout } = await promisify(execFile)(namespace.command, argv, { timeout: 240_000 })
    assert.equal(
      stdout.trim(),
      `A service in another container, or on another machine, holds the data folder ${dataDir}: run the command there (docker exec), or end that service first.`,
    )
    assert.deepEqual(await address(), before)
    assert.equal((await ask([])).exit, 3)
  })

  it('is acquired after its holder in another container was killed, once that has been silent for long', async () => {
    await writeElsewhere(0)
    const refused = await tryAcquire(dataDir)
    assert.deepEqual(refused, { ok: false, holder: { pid: 1, elsewhere: true } })
    assert.equal((await ask(['tag'])).exit, null)
    await writeElsewhere(silenceMs - 1_000)
    await using lock = await acquireDataFolder(dataDir)
    lock.serve(echo)
    assert.equal((await ask([])).exit, 3)
  })

  it('is touched by its holder again and again', async () => {
    await using _lock = await held()
    const past = new Date(Date.now() - silenceMs)
    await utimes(addressFile(dataDir), past, past)
    await until(async () => (await stat(addressFile(dataDir))).mtimeMs > past.getTime() + 1_000)
  })

  it('is not acquired while its holder in another container is paused or busy, however long', async () => {
    using holder = await holderProcess()
    holder.child.kill('SIGSTOP')
    const file = { ...(await address()), network: 'net:[1] another' }
    await writeFile(addressFile(dataDir), JSON.stringify(file))
    const longAgo = new Date(Date.now() - 2 * silenceMs)
    await utimes(addressFile(dataDir), longAgo, longAgo)
    assert.deepEqual(await tryAcquire(dataDir), { ok: false, holder: { pid: holder.child.pid, elsewhere: true } })
    holder.child.kill('SIGKILL')
    await holder.ended
    await (await held()).release()
    const left = (await readdir(dataDir)).filter((name) => name.startsWith('control.json'))
    assert.deepEqual(left, [])
  })

  it('is held by touches alone where no socket can be made, such as under a long path', async () => {
    const long = join(dataDir, 'x'.repeat(100))
    const acquired = await tryAcquire(long)
    assert.ok(acquired.ok)
    assert.deepEqual(await readdir(long), ['control.json'])
    assert.equal((await holderOf(long))?.pid, process.pid)
    await acquired.lock.release()
    assert.deepEqual(await readdir(long), [])
  })

  it('ends its holder when another process has acquired it', async () => {
    using holder = await holderProcess()
    const file = { pid: 1, port: 1, token: 'z'.repeat(64), network: 'net:[1] another' }
    await writeFile(`${addressFile(dataDir)}.new`, JSON.stringify(file))
    await rename(`${addressFile(dataDir)}.new`, addressFile(dataDir))
    assert.deepEqual(await holder.ended, {
      code: 1,
      err: `touchstone: Another process acquired the data folder ${dataDir} while this one was paused or busy, so this one ends. Let one service at a time use the folder.\n`,
    })
    assert.equal((await address()).token, file.token)
    await rm(addressFile(dataDir))
  })

  it('explains a folder that is not writable, and lets the process end', async () => {
    const file = join(dataDir, 'a file')
    await writeFile(file, '')
    const script = `import { tryAcquire } from ${module}; await tryAcquire(${JSON.stringify(file)}).catch((error) => console.log(error.message))`
    const argv = ['--input-type=module', '--eval', script]
    const { stdout } = await promisify(execFile)(process.execPath, argv, { timeout: 240_000 })
    assert.match(stdout, /^Nothing can be written to the data folder .* another one in DATA_DIR\.$/m)
  })

  it('needs a proof of the token, and only the owner can read its file', async () => {
    await using lock = await held()
    lock.serve(echo)
    assert.equal((await stat(addressFile(dataDir))).mode & 0o777, 0o600)
    const { port, token } = await address()
    const ofAnother = authorization({ token }, 'DELETE', '/')
    for (const headers of [{}, { Authorization: 'wrong' }, { Authorization: `Bearer ${token}` }, ofAnother]) {
      const body = JSON.stringify({ argv: ['tag'], cwd: '/' })
      assert.equal((await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body })).status, 403)
    }
  })

  it('gives neither its token nor a command to a program that took the port of a killed service', async () => {
    const seen: string[] = []
    await using lock = await held()
    lock.serve(echo)
    const token = 'a'.repeat(64)
    const { port } = await address()
    // The proof of another service, for the same challenge, is the best that a stranger can present.
    const stranger = await serve(async (request, response) => {
      seen.push(JSON.stringify([request.method, request.rawHeaders]), await text(request))
      const headers = request.headers as Record<string, string>
      const other = await fetch(`http://127.0.0.1:${port}/`, {
        headers: { 'X-Challenge': headers['x-challenge'] ?? '' },
      })
      response.writeHead(204, { 'X-Proof': other.headers.get('x-proof') ?? '' }).end()
    })
    const taken = testFolder()
    await writeFile(addressFile(taken), JSON.stringify({ pid: 1, port: stranger.port, token }))
    try {
      assert.equal(await holderOf(taken), null)
      assert.equal((await ask(['tag'], undefined, taken)).exit, null)
      const acquired = await tryAcquire(taken)
      assert.ok(acquired.ok, 'the folder of a killed service is free')
      await acquired.lock.release()
    } finally {
      await stranger.close()
    }
    assert.ok(seen.length > 0)
    assert.doesNotMatch(seen.join(), new RegExp(`${token}|POST|argv`))
  })

  it('sends no command to a program that says nothing', async (t) => {
    t.mock.method(AbortSignal, 'timeout', () => AbortSignal.abort())
    const seen: string[] = []
    const quiet = await serve((request) => void seen.push(request.method ?? ''))
    await writeFile(addressFile(dataDir), JSON.stringify({ pid: 7, port: quiet.port, token: 'x' }))
    try {
      await assert.rejects(ask(['tag']), { message: /^The service of process 7 does not respond\. / })
      assert.equal((await holderOf(dataDir))?.pid, 7)
    } finally {
      await quiet.close()
      await rm(addressFile(dataDir))
    }
    assert.ok(!seen.includes('POST'))
  })

  it('takes no answer of a program that took the port after the service was found', async () => {
    await using lock = await held()
    lock.serve(echo)
    const real = await address()
    const stranger = await serve(async (request, response) => {
      if (request.method !== 'GET') return void response.end(`${JSON.stringify({ exit: 0 })}\n`)
      const headers = { 'X-Challenge': request.headers['x-challenge'] as string }
      const other = await fetch(`http://127.0.0.1:${real.port}/`, { headers })
      response.writeHead(204, { 'X-Proof': other.headers.get('x-proof') ?? '' }).end()
    })
    const taken = testFolder()
    await writeFile(addressFile(taken), JSON.stringify({ ...real, port: stranger.port }))
    try {
      await assert.rejects(ask(['tag'], undefined, taken), { message: /^The service ended before the command did\./ })
    } finally {
      await stranger.close()
    }
  })

  it('rejects a malformed command and one that is too long', async () => {
    await using lock = await held()
    lock.serve(echo)
    const { port, token } = await address()
    const headers = authorization({ token }, 'POST', '/')
    for (const body of ['{}', '{"argv":[1],"cwd":"/"}', 'no', JSON.stringify({ argv: ['x'.repeat(70_000)], cwd: '/' })])
      assert.equal((await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body })).status, 400)
  })

  it('aborts the command when its caller disconnects', async () => {
    await using lock = await held()
    const aborted = Promise.withResolvers<void>()
    lock.serve(async (_argv, { signal, out }) => {
      signal.addEventListener('abort', () => aborted.resolve())
      out('row 1')
      await aborted.promise
      return 1
    })
    const { port, token } = await address()
    const response = await fetch(`http://127.0.0.1:${port}/`, {
      method: 'POST',
      headers: authorization({ token }, 'POST', '/'),
      body: JSON.stringify({ argv: ['import'], cwd: '/' }),
    })
    await response.body?.cancel()
    await aborted.promise
  })

  it('prints what an interrupted command says at its end, and leaves others running', async () => {
    await using lock = await held()
    const asking = new AbortController()
    const other = Promise.withResolvers<void>()
    lock.serve(async ([name], { signal, out }) => {
      if (name === 'other') await other.promise
      else {
        asking.abort()
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
      }
      out(`${name}: ${signal.aborted ? 'stopped after row 12' : 'done'}`)
      return signal.aborted ? 1 : 0
    })
    const otherAsked = ask(['other'])
    assert.deepEqual(await ask(['import'], asking.signal), { exit: 1, out: ['import: stopped after row 12'], err: [] })
    other.resolve()
    assert.deepEqual(await otherAsked, { exit: 0, out: ['other: done'], err: [] })
  })

  it('waits for a command that is quiet for longer than fetch would wait for a body', async () => {
    await using lock = await held()
    lock.serve(async (_argv, { out }) => {
      out('Place a chip on the reader.')
      const other = await fetch(quiet.url)
      await assert.rejects(other.text(), /terminated/) // so long would fetch have waited here
      out('written')
      return 0
    })
    const quiet = await serve((_, response) => response.writeHead(200).write('…'))
    const before = getGlobalDispatcher()
    setGlobalDispatcher(new Agent({ bodyTimeout: 100 })) // 300 s by default, checked once a second
    const asked = ask(['tag']).finally(() => setGlobalDispatcher(before))
    assert.deepEqual(await asked, { exit: 0, out: ['Place a chip on the reader.', 'written'], err: [] })
    await quiet.close()
  })

  it('reports a service that is killed during a command, or before it answers', async () => {
    let answered = false
    const killed = await serve((request, response) => {
      response.setHeader('X-Proof', proofOf('x', request.headers['x-challenge'] as string))
      if (request.method === 'GET') return void response.writeHead(204).end()
      if (!answered) return void request.socket.resetAndDestroy()
      response.write(`${JSON.stringify({ out: 'begun' })}\n`, () =>
        setImmediate(() => request.socket.resetAndDestroy()),
      )
    })
    const path = addressFile(dataDir)
    await writeFile(path, JSON.stringify({ pid: process.pid, port: killed.port, token: 'x' }))
    try {
      for (answered of [false, true])
        await assert.rejects(ask(['tag']), { message: /^The service ended before the command did\./ })
    } finally {
      await killed.close()
      await rm(path)
    }
  })

  it('aborts running commands and waits for them before it is released', async () => {
    const lock = await held()
    const began = Promise.withResolvers<void>()
    lock.serve((_argv, { signal, out }) => {
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
    await lock.release()
    assert.deepEqual(await asked, { exit: 1, out: ['stopped after row 12'], err: [] })
    assert.equal(await holderOf(dataDir), null)
  })

  /** Writes the address file of a process in another container, as if that had touched it `ms` ago. */
  async function writeElsewhere(ms: number): Promise<void> {
    const file = { pid: 1, port: 1, token: 'x'.repeat(64), network: 'net:[1] another' }
    await writeFile(addressFile(dataDir), JSON.stringify(file))
    const at = new Date(Date.now() - ms)
    await utimes(addressFile(dataDir), at, at)
  }

  /** Starts a process that holds the folder until it is killed. */
  async function holderProcess() {
    const script = `import { acquireDataFolder } from ${module}; await acquireDataFolder(${JSON.stringify(dataDir)}); console.log('acquired'); setInterval(() => {}, 1_000)`
    const child = spawn(process.execPath, ['--input-type=module', '--eval', script], { timeout: 30_000 })
    const said = text(child.stderr)
    const ended = once(child, 'close').then(async ([code]) => ({ code: code as number | null, err: await said }))
    await once(child.stdout, 'data')
    return { child, ended, [Symbol.dispose]: () => void child.kill('SIGKILL') }
  }

  async function held(): Promise<DataDirectoryLock> {
    const opened = await tryAcquire(dataDir)
    if (!opened.ok) throw new Error(`process ${opened.holder.pid} holds the folder`)
    return opened.lock
  }

  async function address(): Promise<{ port: number; token: string }> {
    return JSON.parse(await readFile(addressFile(dataDir), 'utf8')) as { port: number; token: string }
  }

  async function ask(argv: string[], signal: AbortSignal = new AbortController().signal, folder = dataDir) {
    const [out, err]: [string[], string[]] = [[], []]
    const io = { out: (line: string) => out.push(line), err: (line: string) => err.push(line) }
    return { exit: await runInService(folder, argv, { ...io, cwd: '/somewhere', signal }), out, err }
  }
})

/** `npm start` as a stranger meets it: the real command in an empty folder, killed, started again, stopped. */
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { createServer, type AddressInfo } from 'node:net'
import { readFileSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { prove, recheck, type Verdict } from '@touchstone/verdict'
import { createRpcClient } from '../../../src/chain/rpc/client.ts'
import { products } from '../../../src/cli/dev/products.ts'
import { noPostgres, openOwnDatabase } from '../../support/database/databases.ts'
import { testFolder } from '../../support/folder.ts'
import { freePort } from '../../support/free-port.ts'
import { until } from '../../support/wait.ts'
import { freePorts, startDev, touchstone, untilSaid } from '../../support/processes/cli.ts'

/** Starts a process with this umask. */
function underMask<T>(mask: number, start: () => T): T {
  const before = process.umask(mask)
  try {
    return start()
  } finally {
    process.umask(before)
  }
}

/** Returns whether a stopped process has requests on its port, which it has not read. */
function isAsked(port: number): boolean {
  const local = port.toString(16).toUpperCase().padStart(4, '0')
  const unread = new RegExp(`^ *\\d+: \\S+:${local} \\S+ 01 [0-9A-F]{8}:0*[1-9A-F]`, 'm')
  return unread.test(readFileSync('/proc/net/tcp', 'utf8'))
}

describe('npm start', () => {
  const dataDir = testFolder()
  const env: Record<string, string> = { ...freePorts, DATA_DIR: dataDir }

  let first: Verdict
  const openToOthers = () =>
    execFileSync('find', [dataDir, '-perm', '/077'], { encoding: 'utf8' }).split('\n').slice(0, -1)

  it('comes up in an empty folder and prints links that work, for every state and every reason of a flag', async () => {
    const ofAFleet = { ONLY: 'gateway' } // left in the shell: the demonstration still has all roles
    const running = await underMask(0o000, () => startDev({ ...env, ...ofAFleet }))
    assert.deepEqual(openToOthers(), [])
    const { rpc } = running.urls
    const links = [...new Set(running.said().match(/http:\S+\/api\/asset\/\d+/g) ?? [])]
    const verdicts = await Promise.all(links.map(async (link) => (await (await fetch(link)).json()) as Verdict))
    assert.deepEqual(
      [...new Set(verdicts.map(({ state_code }) => state_code))].toSorted((a, b) => a - b),
      [1, 2, 3, 4, 5, 6],
    )
    assert.ok(verdicts.filter(({ flagged }) => flagged).length >= 5)
    assert.ok(verdicts.some(({ untrusted }) => untrusted === undefined))
    for (const verdict of verdicts)
      assert.ok(!/[\p{Bidi_Control}\p{Cc}\u{e0000}-\u{e007f}]/u.test(JSON.stringify(verdict)))
    const taps = running.said().match(/http:\S+picc=\S+/g) ?? []
    assert.equal(taps.length, links.length - 1) // one product carries no tag
    for (const tap of taps) {
      const page = await fetch(tap)
      assert.deepEqual([page.status, page.headers.get('content-type')], [200, 'text/html; charset=utf-8'])
      assert.match(await page.text(), /<body data-tap="tapped"/)
    }
    first = verdicts.find(({ state }) => state === 'CLAIMED') ?? assert.fail('no claimed product')

    const [, block = ''] = /another terminal:\n\n([^]*?)\n\n/.exec(running.said()) ?? []
    const [setup = '', ...commands] = block.split('\n').map((line) => line.trim())
    assert.match(setup, /^export /)
    const shown = [/"CLAIMED"/, /Every field agrees/, /Every field agrees/, /"verified":true/, /signatures are valid/]
    for (const [index, what] of [...shown, new RegExp(`"totalCount":${products.length}`)].entries()) {
      // A reader's terminal stands anywhere, and finds the machine's own Node at first.
      const machine = { cwd: '/', env: { HOME: dataDir, PATH: '/usr/local/bin:/usr/bin:/bin' }, timeout: 240_000 }
      const { stdout } = await promisify(execFile)('/bin/sh', ['-c', `${setup}\n${commands[index]}`], machine)
      assert.match(stdout, what, commands[index])
    }
    assert.ok((await recheck(first, { rpcUrl: rpc, deployment: 'local' })).ok)
    await running.stop('SIGKILL')
  })

  it('finds the same blocks after a SIGKILL: an old verdict still rechecks and proves, and nothing is minted twice', async () => {
    await chmod(dataDir, 0o755)
    await chmod(join(dataDir, 'store', 'PG_VERSION'), 0o644)
    const running = await underMask(0o022, () => startDev(env))
    assert.match(running.said(), /"the data folder was open to other users, and is closed now".*"entries":2/)
    assert.deepEqual(openToOthers(), [])
    const { verification: base, rpc } = running.urls
    for (const report of [
      await recheck(first, { rpcUrl: rpc, deployment: 'local' }),
      await prove(first, { rpcUrl: rpc, deployment: 'local' }),
    ]) {
      assert.ok(report.ok, JSON.stringify(report.checks.filter(({ ok }) => !ok)))
    }
    const again = (await (await fetch(`${base}/api/asset/${first.token_id}`)).json()) as Verdict
    assert.deepEqual({ ...again, chainRef: null }, { ...first, chainRef: null })
    assert.equal((await fetch(`${base}/api/asset/${products.length + 1}`)).status, 404)

    assert.equal(await running.stop('SIGINT'), 0, running.said())
    await assert.rejects(fetch(rpc, { method: 'POST' }), 'the chain still runs')
  })

  it('waits patiently for its own chain, which a busy machine holds up for seconds', async () => {
    const port = await freePort()
    const running = touchstone(['dev'], { ...env, LOCAL_CHAIN_PORT: String(port) })
    await untilSaid(running, '✔ database and hosts') // the catalogue is read now
    const { anvil } = JSON.parse(await readFile(join(dataDir, 'chain', 'anvil.pid'), 'utf8')) as { anvil: number }
    process.kill(anvil, 'SIGSTOP')
    await until(() => isAsked(port) || running.child.exitCode !== null)
    const usual = createRpcClient({ url: `http://127.0.0.1:${port}`, timeoutMs: 8_000 }) // a service's longest deadline
    await assert.rejects(usual('eth_chainId'))
    process.kill(anvil, 'SIGCONT')
    await untilSaid(running, 'Ctrl-C')
    assert.match(running.said(), /Ctrl-C/)
    running.child.kill('SIGTERM')
    assert.equal((await running.ended).exit, 0)
  })

  it('says in one sentence that a port is in use, and changes nothing', async () => {
    const holder = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => holder.once('listening', resolve))
    const port = String((holder.address() as AddressInfo).port)
    for (const name of ['VERIFICATION_PORT', 'LOCAL_CHAIN_PORT']) {
      const empty = testFolder()
      const running = touchstone(['dev'], { ...env, DATA_DIR: empty, [name]: port })
      assert.equal((await running.ended).exit, 1)
      assert.match(running.said(), new RegExp(`^touchstone: Port ${port} is in use\\. .*${name}=\\d+\\.\\n$`))
      assert.deepEqual(await readdir(empty), [])
    }
    holder.close()
  })

  it('leaves the database of a service alone', { skip: noPostgres }, async () => {
    const database = await openOwnDatabase('migrated')
    try {
      await database.query(`insert into tag_batch (id, epoch, status) values ('own', 0, 'active')`)
      const empty = testFolder()
      const running = touchstone(['dev'], { ...env, DATA_DIR: empty, DATABASE_URL: database.url })
      await untilSaid(running, 'Ctrl-C')
      assert.match(
        running.said(),
        /^touchstone: DATABASE_URL names the database of a service, .*: unset it, or .*\.\n$/,
      )
      assert.equal((await running.ended).exit, 1)
      assert.deepEqual(await readdir(empty), [])
      assert.deepEqual(await database.query('select id from tag_batch'), [{ id: 'own' }])
      await database.query(`update tag_batch set id = 'demo'`)
      const again = touchstone(['dev'], { ...env, DATA_DIR: empty, DATABASE_URL: database.url })
      await untilSaid(again, '… chain')
      assert.match(again.said(), /… chain/)
      again.child.kill('SIGKILL')
      await again.ended
    } finally {
      await database.close()
    }
  })

  it('says in one sentence that the data folder is damaged, and exits with 1', async () => {
    for (const name of await readdir(join(dataDir, 'chain'))) {
      if (name.endsWith('.gz')) await writeFile(join(dataDir, 'chain', name), 'damaged')
    }
    const running = touchstone(['dev'], env)
    assert.equal((await running.ended).exit, 1)
    assert.match(running.said(), /^touchstone: The local chain saved in .* is damaged: .*\n$/m)
  })

  it('says in one sentence that the database is damaged, and ends the chain it had started', async () => {
    const folder = testFolder()
    await mkdir(join(folder, 'store'))
    await writeFile(join(folder, 'store', 'PG_VERSION'), 'damaged')
    const running = touchstone(['dev'], { ...env, DATA_DIR: folder })
    assert.equal((await running.ended).exit, 1)
    assert.match(
      running.said(),
      /^touchstone: The database in .* cannot be opened\. Restore the folder from a backup, or move it away .*\.\n$/m,
    )
  })

  it('names the setting that is wrong', async () => {
    const running = touchstone(['dev'], { ...env, VERIFICATION_PORT: 'http' })
    assert.equal((await running.ended).exit, 1)
    assert.equal(
      running.said(),
      'touchstone: VERIFICATION_PORT must be a whole number from 0 to 65535; found "http".\n',
    )
  })
})

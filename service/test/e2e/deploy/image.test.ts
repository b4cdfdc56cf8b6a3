/**
 * deploy/Dockerfile without a container engine. Its own COPY and RUN lines make a folder, and its own command runs there as its own user,
 * with everything read-only but /data.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, mkdirSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { tarballName } from '../../../src/domain/release.ts'
import { openOwnDatabase, noPostgres } from '../../support/database/databases.ts'
import { testFolder } from '../../support/folder.ts'
import { type Running, watched } from '../../support/processes/cli.ts'
import { envOf, mintOne } from '../../support/processes/env.ts'
import { killChildren } from '../../support/processes/kill.ts'
import { freePort } from '../../support/free-port.ts'
import { copiedFiles, read, root, stagesOf } from '../../support/processes/deploy.ts'
import { eventually } from '../../support/wait.ts'
import { startWriterWorld } from '../../support/index/writer-world.ts'

const isRoot = process.getuid?.() === 0

describe('the image', { skip: noPostgres }, () => {
  const stages = stagesOf(read('deploy/Dockerfile'))
  const image = stages.at(-1)
  const folder = testFolder()
  const opened = new AsyncDisposableStack()
  const data = join(folder, 'data')
  let env: Record<string, string>
  before(async () => {
    chmodSync(folder, 0o755)
    const chain = opened.adopt(await startWriterWorld(), (it) => it.close())
    const database = opened.use(await openOwnDatabase('migrated'))
    opened.defer(killChildren)
    await mintOne(chain, database)
    const [verification, graphql] = [await freePort(), await freePort()]
    env = {
      ...image?.env,
      PATH: `${join(folder, 'bin')}:/usr/bin:/bin:/usr/sbin:/sbin`,
      ...envOf({ dataDir: data, database, chain }),
      HOST: '127.0.0.1',
      VERIFICATION_PORT: String(verification),
      GRAPHQL_PORT: String(graphql),
      PASSPORT_SIGNING: 'on',
      TAG_KEK: `${'6b'.repeat(31)}01`,
      STATION_KEK: `${'73'.repeat(31)}03`,
      TAG_PEPPER: `${'70'.repeat(31)}02`,
    }
  })
  after(() => opened.disposeAsync())

  /** A path of the image, as it is here. */
  const here = (stage: string, path: string) =>
    path.startsWith('/data') ? path.replace('/data', data) : join(folder, stage, path)

  /** Runs a command of the image as its user; only `/data` can be written. */
  function start(command: readonly string[]): Running {
    const cwd = here('', '/app')
    const [user = '', group = ''] = (image?.user ?? '').split(':')
    const drop = `exec setpriv --reuid ${user} --regid ${group} --clear-groups --no-new-privs --inh-caps=-all -- "$@"`
    const script = `mount --make-rprivate / && mount --bind "$DATA_DIR" "$DATA_DIR" && mount -o remount,bind,ro / && ${drop}`
    const words = isRoot ? ['unshare', '--mount', 'sh', '-c', script, 'sh', ...command] : command
    return watched(words[0] ?? '', words.slice(1), { cwd, env })
  }

  async function run(command: readonly string[]): Promise<{ exit: number | null; said: string }> {
    const { ended, said } = start(command)
    const { exit } = await ended
    return { exit, said: said() }
  }

  it('is built of what its Dockerfile copies, by what it runs', () => {
    assert.equal(stages.length, 3)
    for (const { name, copies, runs } of stages) {
      for (const { from, sources, to } of copies)
        for (const source of sources) {
          const target = join(here(name, '/app'), to)
          if (from !== null) cpSync(here(from, source), target, { recursive: true, verbatimSymlinks: true })
          else copy(source, target, { isFolder: to.endsWith('/') || sources.length > 1 })
        }
      for (const line of runs) {
        const made = spawnSync('sh', ['-c', line.replaceAll('/data', data)], {
          cwd: here(name, '/app'),
          encoding: 'utf8',
          env: { ...process.env, npm_config_prefer_offline: 'true' },
          timeout: 840_000, // an installation beside other tests takes minutes
        })
        assert.equal(made.status, 0, made.stderr)
      }
    }
    const installed = readdirSync(here('', '/app/node_modules'))
    assert.ok(installed.includes('viem') && !installed.includes('knip'))
    // The image's own Node.
    mkdirSync(join(folder, 'bin'))
    copyFileSync(process.execPath, join(folder, 'bin/node'))
    execFileSync('chmod', ['-R', 'a-w,a+rX', here('', '/app'), join(folder, 'bin')])
  })

  it('starts as its own user on a read-only root, is healthy by its own word, and ends by SIGTERM', async () => {
    assert.equal((await run(image?.healthcheck ?? [])).exit, 1)
    const { child, said, ended } = start(image?.command ?? [])
    const isHealthy = async () => child.exitCode !== null || (await run(image?.healthcheck ?? [])).exit === 0
    assert.ok(await eventually(isHealthy), said())
    assert.equal(child.exitCode, null, said())

    const verdict = await fetch(`http://127.0.0.1:${env['VERIFICATION_PORT']}/api/asset/1`)
    assert.equal(verdict.status, 200)
    const packages = (['cli', 'library'] as const).map((name) => `/packages/${tarballName(name)}`)
    for (const path of ['/docs', '/openapi.json', '/', '/.well-known/did.json', '/packages/SHA256SUMS', ...packages])
      assert.equal((await fetch(`http://127.0.0.1:${env['VERIFICATION_PORT']}${path}`)).status, 200, path)
    assert.equal((await fetch(`http://127.0.0.1:${env['GRAPHQL_PORT']}/playground`)).status, 200)
    const made = await run([...(image?.command ?? []).slice(0, -1), 'tag', 'batch', 'create', 'spring'])
    assert.equal(made.exit, 0, made.said)
    assert.deepEqual(readdirSync(join(data, 'keys')).toSorted(), ['issuer.jwks.json', 'tag-keys.json'])
    assert.deepEqual(readdirSync(join(data, 'station')), ['station.keys'])
    if (isRoot)
      assert.match((await run(['touch', '/app-is-read-only'])).said, /Read-only file system|Permission denied/)

    child.kill('SIGTERM')
    assert.equal((await ended).exit, 0, said())
  })
})

function copy(source: string, target: string, { isFolder }: { readonly isFolder: boolean }): void {
  for (const file of copiedFiles(source)) {
    // A folder is copied by its content; a file into a folder, or under a new name.
    const path =
      file === source
        ? isFolder
          ? join(target, file.split('/').at(-1) ?? '')
          : target
        : join(target, file.slice(source.length))
    mkdirSync(dirname(path), { recursive: true })
    copyFileSync(join(root, file), path)
  }
}

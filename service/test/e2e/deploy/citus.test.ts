/** deploy/compose.citus.yaml and deploy/kubernetes/components/citus: real nodes with passwords become a cluster, and the tables are spread over it. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { parse, parseAllDocuments } from 'yaml'
import { distributions, readCluster } from '../../../src/db/cluster/distribute.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { citusLacks, installCitus } from '../../support/database/citus-cluster.ts'
import { postgresUser } from '../../support/database/postgres-cluster.ts'
import { freePorts } from '../../support/free-port.ts'
import { touchstone } from '../../support/processes/cli.ts'
import { read, root } from '../../support/processes/deploy.ts'
import { until } from '../../support/wait.ts'

type Compose = {
  services: Record<
    string,
    { image?: string; command?: string[]; environment?: Record<string, string>; volumes?: string[] }
  >
}

const { services } = parse(read('deploy/compose.citus.yaml'), { merge: true }) as Compose
const component = 'deploy/kubernetes/components/citus'
const lacks = citusLacks()

describe('the nodes of a Citus cluster', () => {
  it('have the same settings in compose and on Kubernetes, and one script that joins them', () => {
    const [node] = parseAllDocuments(read(`${component}/node.yaml`)).map((document) => document.toJS() as Node)
    const pod = node?.spec.template.spec.containers[0]
    for (const name of ['postgres', 'citus-worker-1', 'citus-worker-2']) {
      assert.deepEqual(services[name]?.command, pod?.args, name)
      const names = Object.keys(services[name]?.environment ?? {})
      assert.deepEqual(
        names,
        pod?.env.map((one) => one.name).filter((one) => one !== 'PGDATA'),
        name,
      )
    }
    // The file is on the volume of the node, beside or in the folder of the database.
    const passwords = Object.values(services)
      .map(({ environment }) => environment?.['PGPASSFILE'])
      .filter(Boolean)
    passwords.push(pod?.env.find(({ name }) => name === 'PGPASSFILE')?.value)
    assert.deepEqual(passwords, Array(4).fill('/var/lib/postgresql/data/pgpass'))
    assert.deepEqual(services['citus-join']?.volumes, ['./kubernetes/components/citus/join.sh:/join.sh:ro'])
    assert.deepEqual(services['migrate']?.command, ['migrate', '--distribute'])
  })
})

describe('the image of a Citus cluster', () => {
  it('is named by the operator, and none stands in for it', () => {
    for (const name of ['postgres', 'citus-worker-1', 'citus-worker-2', 'citus-join'])
      assert.match(services[name]?.image ?? '', /^\$\{CITUS_IMAGE:\?[^}]+\}$/, name)
    assert.match(read('deploy/.env.example'), /^# CITUS_IMAGE=registry\.example\.com\//m)
    const { images } = parse(read('deploy/kubernetes/overlays/citus/kustomization.yaml')) as {
      images: { name: string; newName: string }[]
    }
    assert.match(images.find(({ name }) => name === 'citus')?.newName ?? '', /^registry\.example\.com\//)
  })
})

type Node = {
  spec: { template: { spec: { containers: { args: string[]; env: { name: string; value?: string }[] }[] } } }
}

describe('deploy/kubernetes/components/citus/join.sh', { skip: lacks ?? false }, () => {
  const password = 'a-password-of-the-nodes'
  const user = postgresUser()
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'touchstone-nodes-'))
  const env = { PATH: process.env['PATH'], PGUSER: 'touchstone', PGPASSWORD: password, PGDATABASE: 'touchstone' }
  const ends: (() => Promise<void>)[] = []
  let nodes: string[]
  let url: string

  before(async () => {
    const bin = installCitus(folder)
    if ('uid' in user) chownSync(folder, user.uid, user.gid)
    writeFileSync(join(folder, 'password'), password)
    const run = (program: string, ...args: string[]) =>
      promisify(execFile)(program, args, { ...user, cwd: folder, env, timeout: 240_000 })
    const first = await freePorts(3)
    nodes = [0, 1, 2].map((index) => `127.0.0.1:${first + index}`)
    await Promise.all(
      nodes.map(async (_, index) => {
        const data = join(folder, `node-${index}`)
        const account = ['-U', 'touchstone', '-A', 'scram-sha-256', `--pwfile=${join(folder, 'password')}`]
        await run(join(bin, 'initdb'), '-D', data, ...account, '-E', 'UTF8', '-N')
        const [, ...settings] = services[index === 0 ? 'postgres' : `citus-worker-${index}`]?.command ?? []
        const listens = [
          '-p',
          String(first + index),
          '-clisten_addresses=127.0.0.1',
          '-cunix_socket_directories=',
          '-cfsync=off',
        ]
        // The image's entry point takes PGPASSWORD away from a server whose database it has just made.
        const { PGPASSWORD: _password, ...ofServer } = env
        const server = spawn(join(bin, 'postgres'), ['-D', data, ...listens, ...settings], {
          ...user,
          env: { ...ofServer, PGPASSFILE: join(data, 'pgpass') },
          stdio: 'ignore',
        })
        const ended = once(server, 'exit')
        ends.push(async () => {
          server.kill('SIGQUIT')
          await ended
        })
        const at = ['-h', '127.0.0.1', '-p', String(first + index)]
        const isReady = () =>
          run('pg_isready', ...at).then(
            () => true,
            () => server.exitCode !== null,
          )
        await until(isReady)
        await run('createdb', ...at, 'touchstone')
      }),
    )
    url = `postgres://touchstone:${password}@${nodes[0]}/touchstone`
  })
  after(async () => {
    await Promise.all(ends.map((end) => end()))
    rmSync(folder, { recursive: true, force: true })
  })

  const joinNodes = () => {
    const [coordinator, ...workers] = nodes
    const all = { ...env, CITUS_COORDINATOR: coordinator, CITUS_WORKERS: workers.join(' ') }
    return promisify(execFile)('sh', [join(root, component, 'join.sh')], { env: all, timeout: 240_000 })
  }

  it('makes a cluster of nodes that ask for passwords, and may be repeated', async () => {
    for (let time = 0; time < 2; time++) assert.deepEqual((await joinNodes()).stdout.trim().split('\n'), nodes)
    for (const index of nodes.keys()) {
      const file = join(folder, `node-${index}`, 'pgpass')
      assert.deepEqual(
        [readFileSync(file, 'utf8'), statSync(file).mode & 0o777],
        [`*:*:*:touchstone:${password}\n`, 0o600],
      )
    }
  })

  it('is followed by a migration that spreads the tables over the workers', async () => {
    const dataDir = join(folder, 'data')
    mkdirSync(dataDir)
    for (let time = 0; time < 2; time++) {
      const { exit, err } = await touchstone(['migrate', '--distribute'], { DATA_DIR: dataDir, DATABASE_URL: url })
        .ended
      assert.equal(exit, 0, err)
    }
    await using database = await openDatabase({ url })
    assert.equal(database.dialect, 'citus')
    const cluster = await readCluster(database)
    assert.deepEqual([cluster?.nodes, cluster?.missing], [2, []])
    assert.equal(cluster?.tables.length, distributions.length)
  })
})

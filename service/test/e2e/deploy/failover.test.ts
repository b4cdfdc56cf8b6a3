/** deploy/failover: Debian's HAProxy and Patroni accept the files, and they speak of the same machines. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { chownSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { parse } from 'yaml'
import { postgresUser } from '../../support/database/postgres-cluster.ts'
import { testFolder } from '../../support/folder.ts'
import { envOf, read, root } from '../../support/processes/deploy.ts'
import { freePort } from '../../support/free-port.ts'

const skipOf = (program: string) =>
  process.env['REQUIRE_SERVICES'] === '1' || existsSync(program) ? false : `no ${program}`
const run = (program: string, args: readonly string[], env: Record<string, string> = {}) =>
  spawnSync(program, args, { encoding: 'utf8', timeout: 240_000, env: { ...process.env, ...env } })
const passwords = Object.fromEntries(
  ['SUPERUSER', 'REPLICATION', 'REWIND'].map((name) => [`PATRONI_${name}_PASSWORD`, 'secret']),
)

type Patroni = {
  readonly name: string
  readonly restapi: { readonly listen: string; readonly connect_address: string }
  readonly etcd3: { readonly hosts: string }
  readonly bootstrap: {
    readonly dcs: { ttl: number; loop_wait: number; retry_timeout: number; synchronous_mode: boolean }
    readonly initdb: readonly (string | Readonly<Record<string, string>>)[]
    readonly pg_hba: readonly string[]
  }
  readonly postgresql: { readonly connect_address: string; readonly bin_dir: string }
}

describe('deploy/failover', () => {
  const patroni = parse(read('deploy/failover/patroni.yml')) as Patroni
  const etcd = envOf(read('deploy/failover/etcd.env'))

  it('haproxy.cfg is accepted by HAProxy', { skip: skipOf('/usr/sbin/haproxy') }, () => {
    const { status, stdout, stderr } = run('/usr/sbin/haproxy', ['-c', '-f', join(root, 'deploy/failover/haproxy.cfg')])
    assert.equal(status, 0, stdout + stderr)
  })

  it('patroni.yml is accepted by Patroni', { skip: skipOf('/usr/bin/patroni') }, async () => {
    const folder = testFolder()
    // Patroni demands that the ports are free, the folder may be made, and the programs of PostgreSQL are there.
    const text = read('deploy/failover/patroni.yml')
      .replace('0.0.0.0:8008', `127.0.0.1:${await freePort()}`)
      .replace('0.0.0.0:5432', `127.0.0.1:${await freePort()}`)
      .replace('/var/lib/postgresql/15/touchstone', join(folder, 'data'))
    const path = join(folder, 'patroni.yml')
    writeFileSync(path, text)
    const { status, stdout, stderr } = run('/usr/bin/patroni', ['--validate-config', path], passwords)
    assert.equal(status, 0, stdout + stderr)
  })

  it(
    'patroni.yml makes a server that trusts no connection',
    { skip: skipOf('/usr/lib/postgresql/15/bin/initdb') },
    () => {
      const folder = testFolder()
      const user = postgresUser()
      if ('uid' in user) chownSync(folder, user.uid, user.gid)
      const password = join(folder, 'password')
      writeFileSync(password, 'secret\n', { mode: 0o644 })
      // Patroni starts initdb with the account, its password and these options, and appends its lines to the file of rules.
      const { initdb, pg_hba: appended } = patroni.bootstrap
      const options = initdb.flatMap((option) =>
        typeof option === 'string'
          ? `--${option}`
          : Object.entries(option).map(([name, value]) => `--${name}=${value}`),
      )
      const program = join(patroni.postgresql.bin_dir, 'initdb')
      const data = join(folder, 'data')
      execFileSync(program, ['-N', '-D', data, '--username=postgres', `--pwfile=${password}`, ...options], {
        ...user,
        cwd: folder,
        stdio: 'pipe',
      })
      const lines = [...readFileSync(join(data, 'pg_hba.conf'), 'utf8').split('\n'), ...appended]
      const rules = lines.filter((line) => /^(local|host)/.test(line))
      assert.deepEqual(
        rules.filter((line) => !/ (peer|scram-sha-256)$/.test(line)),
        [],
      )
      assert.ok(rules.length > appended.length)
    },
  )

  it('patroni.yml lets no other machine change the cluster', { skip: skipOf('/usr/bin/patroni') }, async () => {
    const { listen: _listen, ...restapi } = patroni.restapi
    const config = { ...restapi, listen: `127.0.0.1:${await freePort()}` }
    // Patroni's own REST server; a cluster without members, so that this machine is none.
    const program = `
import json, sys, urllib.error, urllib.request
from types import SimpleNamespace
from patroni.api import RestApiServer
config = json.loads(sys.argv[1])
node = SimpleNamespace(dcs=SimpleNamespace(cluster=SimpleNamespace(members=[], workers={})), sighup_handler=lambda *_: None)
RestApiServer(node, config).start()
request = urllib.request.Request('http://' + config['listen'] + '/reload', method='POST')
try: print(urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error: print(error.code)
`
    const { stdout, stderr } = run('/usr/bin/python3', ['-c', program, JSON.stringify(config)])
    assert.equal(stdout, '403\n', stderr)
  })

  it('names the same machines everywhere, and times that Patroni can keep', () => {
    const machines = [...etcd['ETCD_INITIAL_CLUSTER']!.matchAll(/([\w-]+)=http:\/\/([\d.]+):2380/g)]
    assert.equal(machines.length, 3)
    assert.equal(patroni.etcd3.hosts, machines.map(([, , host]) => `${host}:2379`).join(','))
    const haproxy = read('deploy/failover/haproxy.cfg')
    for (const [, name, host] of machines)
      assert.equal(haproxy.split(`server ${name} ${host}:5432 check port 8008\n`).length, 3, name)
    const [, first, host] = machines[0] ?? []
    assert.deepEqual([patroni.name, etcd['ETCD_NAME']], [first, first])
    assert.deepEqual(
      [patroni.restapi.connect_address, patroni.postgresql.connect_address],
      [`${host}:8008`, `${host}:5432`],
    )
    const { ttl, loop_wait, retry_timeout, synchronous_mode } = patroni.bootstrap.dcs
    assert.ok(loop_wait + 2 * retry_timeout <= ttl)
    assert.ok(synchronous_mode)
  })
})

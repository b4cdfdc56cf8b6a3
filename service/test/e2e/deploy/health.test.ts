/** The health check of the image asks the hosts of the role that a container of compose has. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { clusterSkip, startPostgres } from '../../support/database/postgres-cluster.ts'
import { testFolder } from '../../support/folder.ts'
import { serve } from '../../support/http.ts'
import { read, readCompose, root } from '../../support/processes/deploy.ts'
import { usualPingLimits } from '../../../src/cli/serve/workers.ts'

describe('deploy/Dockerfile', () => {
  const text = read('deploy/Dockerfile')

  it('asks for no image beside its own stages, such as a front end that a syntax line names', () => {
    assert.doesNotMatch(text, /^#\s*syntax\s*=/im)
  })

  it('lets a container start for as long as a worker may take, and a busy machine start the check itself', () => {
    const { pingEveryMs, mostAtStart } = usualPingLimits
    const [, timeout, start] = /^HEALTHCHECK .*--timeout=(\d+)s --start-period=(\d+)s /m.exec(text) ?? []
    assert.ok(Number(start) * 1_000 >= pingEveryMs * mostAtStart, `start period of ${start} s`)
    // The check waits four seconds for an answer. Node needs several to start where the processors are busy.
    assert.ok(Number(timeout) >= 10, `timeout of ${timeout} s`)
  })
})

describe('the health check of a container', () => {
  const serving = Object.entries(readCompose().services).filter(([, { command }]) => command?.[0] === 'serve')

  it('finds a container healthy by the hosts of its role alone', async () => {
    const server = await serve((_, response) => void response.end())
    const port = String(server.port)
    const ports = { verification: 'VERIFICATION_PORT', gateway: 'GATEWAY_PORT', graphql: 'GRAPHQL_PORT' }
    const check = async (env: Record<string, string>) => {
      const child = spawn(process.execPath, [join(root, 'deploy/healthcheck.ts')], { env, stdio: 'ignore' })
      return (await once(child, 'exit'))[0] as number
    }
    try {
      assert.equal(serving.length, 4)
      for (const [role, { environment = {} }] of serving) {
        const own = role === 'indexer' ? 'METRICS_PORT' : ports[role as keyof typeof ports]
        /** A port that nothing listens on, for all but the role's own. */
        const others = Object.fromEntries([...Object.values(ports), 'METRICS_PORT'].map((name) => [name, '1']))
        const env = { ...environment, PAYMENT_PAY_TO: '0x', ...others }
        assert.deepEqual([await check({ ...env, [own]: port }), await check(env)], [0, 1], role)
      }
    } finally {
      await server.close()
    }
  })
})

describe('the health check of PostgreSQL', { skip: clusterSkip }, () => {
  // The image makes a new database with a server that listens on its socket alone. The real one starts after it.
  const [node] = parseAllDocuments(read('deploy/kubernetes/components/citus/node.yaml')).map(
    (document) => document.toJS() as { spec: { template: { spec: { containers: Probed[] } } } },
  )
  const [pod] = node?.spec.template.spec.containers ?? []
  const citus = parse(read('deploy/compose.citus.yaml'), { merge: true }) as ReturnType<typeof readCompose>
  const checks = [
    ...[readCompose(), citus].flatMap(({ services }) =>
      Object.entries(services).flatMap(([name, { healthcheck }]) =>
        healthcheck?.test?.[1] === 'pg_isready' ? [[name, healthcheck.test.slice(1)] as const] : [],
      ),
    ),
    ['startupProbe', pod?.startupProbe.exec.command ?? []] as const,
    ['readinessProbe', pod?.readinessProbe.exec.command ?? []] as const,
  ]

  it('waits for the server that others reach, on compose and on Kubernetes', async () => {
    assert.deepEqual(
      checks.map(([name]) => name),
      ['postgres', 'citus-worker-1', 'citus-worker-2', 'startupProbe', 'readinessProbe'],
    )
    for (const reaches of [false, true]) {
      const folder = testFolder()
      chmodSync(folder, 0o777)
      const listens = reaches ? '127.0.0.1' : "''"
      const server = await startPostgres({ listen_addresses: listens, unix_socket_directories: folder })
      const env = { ...process.env, PGHOST: folder, PGPORT: new URL(server.url).port }
      try {
        for (const [name, [program = '', ...words]] of checks)
          assert.equal(spawnSync(program, words, { env }).status === 0, reaches, name)
      } finally {
        await server.end()
      }
    }
  })
})

type Probed = Readonly<Record<'startupProbe' | 'readinessProbe', { exec: { command: string[] } }>>

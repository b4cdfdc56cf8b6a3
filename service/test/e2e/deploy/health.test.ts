/** The health check of the image asks the hosts of the role that a container of compose has. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { readCompose, root } from '../../support/processes/deploy.ts'

describe('the health check of a container', () => {
  const serving = Object.entries(readCompose().services).filter(([, { command }]) => command?.[0] === 'serve')

  it('finds a container healthy by the hosts of its role alone', async () => {
    const server = createServer((_, response) => void response.end()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const port = String((server.address() as AddressInfo).port)
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
      server.close()
    }
  })
})

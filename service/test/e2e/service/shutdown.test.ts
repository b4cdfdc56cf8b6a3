/** SIGTERM under load: what was accepted is answered, and the process ends (spec §4.1; `touchstone serve`). */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { Agent, request } from 'node:http'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { copyEmptyPglite } from '../../support/database/pglite.ts'
import { startWorld } from '../../support/world.ts'
import { until } from '../../support/wait.ts'

const cli = fileURLToPath(new URL('../../../src/cli.ts', import.meta.url))

it('fails no accepted request, and ends while clients keep asking', async () => {
  const world = await startWorld()
  for (let index = 0; index < 20; index += 1) await world.mint()
  const dataDir = await mkdtemp(join(tmpdir(), 'touchstone-serve-'))
  await copyEmptyPglite(join(dataDir, 'store'))
  const child = spawn(process.execPath, [cli, 'serve'], {
    env: { ...process.env, ...world.settings, DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const port = await new Promise<number>((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      const line = chunk
        .toString()
        .split('\n')
        .find((text) => text.includes('verification host listens'))
      if (line !== undefined) resolve((JSON.parse(line) as { port: number }).port)
    })
  })

  const agent = new Agent({ keepAlive: true, maxSockets: 32 })
  const failures: string[] = []
  let answered = 0
  const clients = Array.from({ length: 32 }, async (_, client) => {
    for (let n = 0; ; n += 1) {
      const outcome = await get(port, `/api/asset/${((client + n) % 20) + 1}`, agent)
      if (outcome === 'ECONNREFUSED') return
      if (outcome === '200') answered += 1
      else failures.push(outcome)
    }
  })
  await until(() => answered >= 500 || failures.length > 0)
  child.kill('SIGTERM')
  assert.equal(await ended, 0)
  await Promise.all(clients)
  agent.destroy()
  assert.deepEqual(failures, [])
  await world.end()
  await rm(dataDir, { recursive: true })
})

function get(port: number, path: string, agent: Agent): Promise<string> {
  return new Promise((resolve) => {
    const outgoing = request({ port, host: '127.0.0.1', path, agent }, (response) => {
      response.resume()
      response.on('end', () => resolve(String(response.statusCode)))
      response.on('error', () => resolve('cut'))
    })
    outgoing.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'error'))
    outgoing.end()
  })
}

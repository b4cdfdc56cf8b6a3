/** A request that comes while the service starts is answered: listeners are open before the hosts behind them are. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { readConfig } from '../../../src/app/config/config.ts'
import { createLog } from '../../../src/lib/log.ts'
import { startService } from '../../../src/app/service.ts'
import { copyEmptyPglite } from '../../support/database/pglite.ts'
import { startWorld } from '../../support/world.ts'
import { freePort } from '../../support/free-port.ts'

it('answers the first request that a listener accepts, however early', async () => {
  const world = await startWorld()
  const dataDir = await mkdtemp(join(tmpdir(), 'touchstone-starting-'))
  await copyEmptyPglite(join(dataDir, 'store'))
  const port = await freePort()
  const settings = { ...world.settings, DATA_DIR: dataDir, GRAPHQL_PORT: String(port) }
  const log = createLog(() => {}, 'silent')
  let open = false
  const starting = startService(readConfig(settings), log).finally(() => (open = true))
  let answered: number | undefined
  let early = false
  for (let tries = 0; tries < 20_000 && answered === undefined; tries += 1) {
    early = !open
    answered = await fetch(`http://127.0.0.1:${port}/graphql`, { signal: AbortSignal.timeout(120_000) }).then(
      ({ status }) => status,
      (error: Error) => {
        if (error.name === 'TimeoutError') throw error
        return undefined
      },
    )
    if (answered === undefined) await delay(1)
  }
  assert.equal(answered, 401)
  assert.ok(early, 'the service was open before the first request')
  await (await starting).close(200)
  await world.end()
  await rm(dataDir, { recursive: true, force: true })
})

/**
 * `npm run chaos` itself. A fleet of real processes survives some of its faults, and its checks find damage that is done on purpose
 * (docs/operators-handbook.md, «What was broken on purpose»).
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { watched } from '../../support/processes/cli.ts'

const script = fileURLToPath(new URL('../../../../bench/chaos/main.ts', import.meta.url))
const debian = '/usr/lib/postgresql'
const folders = [
  ...(process.env['PATH'] ?? '').split(':'),
  ...(existsSync(debian) ? readdirSync(debian).map((version) => join(debian, version, 'bin')) : []),
]
const missing = ['initdb', 'redis-server'].filter((name) => !folders.some((folder) => existsSync(join(folder, name))))
const skip =
  missing.length > 0 && process.env['REQUIRE_SERVICES'] !== '1' && `${missing.join(' and ')} is not installed`

describe('npm run chaos', { skip }, () => {
  it('sees a fleet survive a broken PostgreSQL, a broken Redis and a dead provider', async () => {
    const names = ['postgres-restart', 'redis-gone', 'rpc-first-dead']
    const { exit, said } = await chaos('--seconds', '1', ...names)
    assert.equal(exit, 0, said)
    for (const name of names) assert.match(said, new RegExp(`^${name} .* kept$`, 'm'))
    assert.match(said, /^3 of 3 faults survived$/m)
  })

  it('finds forged verdicts, taps that count twice, lost taps, lost payments and a start that ends', async () => {
    const plants = 'impatient,forged-verdict,lost-tap,doubled-tap,doubled-event,lost-payment'
    const { exit, said } = await chaos('--seconds', '1', '--plant', plants, 'start-during-lock')
    assert.equal(exit, 1, said)
    for (const found of [
      /readAsset is wrong .*not what the chain said at its block/,
      /an accepted tap is not in the ledger/,
      /a tap below the last counter of its tag is not answered as replayed .*"verified":true/,
      /\d+ taps were announced by \d+ events/,
      /the same payment header gets another answer/,
      /a ended by itself \d+ times/,
    ])
      assert.match(said, found)
  })
})

async function chaos(...args: readonly string[]): Promise<{ exit: number | null; said: string }> {
  // A plain program, also when a test runner started this one.
  const { NODE_TEST_CONTEXT: _none, ...env } = process.env
  const { ended, said } = watched(process.execPath, [script, ...args], { env })
  const { exit } = await ended
  return { exit, said: said() }
}

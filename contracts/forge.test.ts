import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { it } from 'node:test'
import { fileURLToPath } from 'node:url'

/** Runs contracts/test.ts beside the other tests: its invariants take one core for half a minute. */
it('the Solidity tests pass, and the gas is that of the snapshot', async () => {
  const script = fileURLToPath(new URL('test.ts', import.meta.url))
  const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'pipe'] })
  const exit = new Promise((resolve) => child.once('exit', resolve))
  const said = await Promise.all([text(child.stdout), text(child.stderr)])
  assert.equal(await exit, 0, said.join('\n'))
})

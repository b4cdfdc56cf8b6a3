import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { contractsTarget } from '../scripts/mutation/solidity/run.ts'

/** Runs contracts/test.ts beside the other tests. */
it('the Solidity tests pass, and the gas is that of the snapshot', async () => {
  const script = fileURLToPath(new URL('test.ts', import.meta.url))
  const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'pipe'] })
  const exit = new Promise((resolve) => child.once('exit', resolve))
  const said = await Promise.all([text(child.stdout), text(child.stderr)])
  assert.equal(await exit, 0, said.join('\n'))
})

/** A sample of `npm run mutate -- contracts`, after the tests are compiled. */
describe('the Solidity tests notice', () => {
  const mutants = contractsTarget.mutants()
  const sample = [
    { function: 'mint', change: 'onlyRole(ISSUER) → nothing', at: 0 },
    { function: 'mintBatch', change: 'onlyRole(ISSUER) → nothing', at: 1 },
    { function: 'recycle', change: 'msg.sender != asset.owner → false', at: 1 },
  ]
  for (const { function: name, change, at } of sample) {
    it(`${change} in ${name}`, async () => {
      const mutant = mutants.filter((one) => one.change === change)[at]
      assert.ok(mutant !== undefined)
      assert.equal(await contractsTarget.fateOf(mutant), 'killed')
    })
  }
})

/** `npm run check:lies` in short: lying providers, and the plant that shows that the check can fail. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'

const script = fileURLToPath(new URL('../../../../bench/lies/main.ts', import.meta.url))

function check(...args: string[]): Promise<{ exit: number | null; out: string }> {
  const child = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (out += chunk.toString()))
  return new Promise((resolve) => child.once('close', (exit) => resolve({ exit, out })))
}

describe('npm run check:lies', () => {
  it('finds no wrong verdict in quorum and proof, and in rpc only lies inside the value', async () => {
    const { exit, out } = await check('--mutations', '60')
    assert.equal(exit, 0, out)
    // Two honest providers of a quorum outvote most lies, so that few reads are refused, or none.
    for (const [mode, refused] of [
      ['rpc', '[1-9]\\d*'],
      ['quorum', '\\d+'],
      ['proof', '[1-9]\\d*'],
    ])
      assert.match(out, new RegExp(`^${mode}: [1-9]\\d* right, ${refused} refused.* 0 wrong, of 60 `, 'm'))
  })

  it('fails where the trust mode is ignored on purpose', async () => {
    const { exit, out } = await check('--plant', '--mutations', '500')
    assert.equal(exit, 1, out)
    assert.match(out, /wrong: token \d+/)
  })
})

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, it } from 'node:test'

/** A process that is asked to end and takes its time. */
const program = `
  import { untilStopped } from ${JSON.stringify(new URL('signals.ts', import.meta.url).href)}
  const stopped = untilStopped()
  setTimeout(() => process.exit(0), 10_000)
  console.log('starting')
  process.once('message', () => {
    stopped.started()
    console.log('started')
  })
  console.log('asked by ' + (await stopped.asked))
`

async function begin(): Promise<{
  send: (signal: NodeJS.Signals) => void
  start: () => void
  says: (text: string) => Promise<void>
  ended: Promise<number | null>
  [Symbol.dispose]: () => void
}> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const { stdout } = child
  assert.ok(stdout)
  let said = ''
  stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const says = async (text: string) => {
    while (!said.includes(text)) await once(stdout, 'data')
  }
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  await says('starting')
  return {
    send: (signal) => void child.kill(signal),
    start: () => void child.send('start'),
    says,
    ended,
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  }
}

describe('untilStopped', () => {
  it('takes one Ctrl-C that comes twice, from the terminal and from npm, as one wish; a later one insists', async () => {
    using running = await begin()
    running.start()
    await running.says('started')
    running.send('SIGINT')
    await running.says('asked by SIGINT')
    running.send('SIGINT')
    const isOver = await Promise.race([
      running.ended,
      new Promise((resolve) => setTimeout(resolve, 1_100, 'still ending')),
    ])
    assert.equal(isOver, 'still ending')
    running.send('SIGINT')
    assert.equal(await running.ended, 130)
  })

  it('ends a process at once that is still starting', async () => {
    using running = await begin()
    running.send('SIGTERM')
    assert.equal(await running.ended, 143)
  })
})

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'

const signalsFile = JSON.stringify(new URL('signals.ts', import.meta.url).href)

/** A process that takes long to end. */
const program = `
  import { handleSignals } from ${signalsFile}
  const signals = handleSignals()
  setTimeout(() => process.exit(0), 10_000)
  console.log('starting')
  process.once('message', () => {
    signals.started()
    console.log('started')
  })
  console.log('stopped by ' + (await signals.stop))
`

async function begin(): Promise<{
  send: (signal: NodeJS.Signals) => void
  start: () => void
  prints: (text: string) => Promise<void>
  ended: Promise<number | null>
  [Symbol.dispose]: () => void
}> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const { stdout } = child
  assert.ok(stdout)
  let printed = ''
  stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  const prints = async (text: string) => {
    while (!printed.includes(text)) await once(stdout, 'data')
  }
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  await prints('starting')
  return {
    send: (signal) => void child.kill(signal),
    start: () => void child.send('start'),
    prints,
    ended,
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  }
}

describe('handleSignals', () => {
  it('counts a Ctrl-C that arrives twice, from the terminal and from npm, once; a later one ends the process', async () => {
    using running = await begin()
    running.start()
    await running.prints('started')
    running.send('SIGINT')
    await running.prints('stopped by SIGINT')
    running.send('SIGINT')
    const isOver = await Promise.race([
      running.ended,
      new Promise((resolve) => setTimeout(resolve, 1_100, 'still ending')),
    ])
    assert.equal(isOver, 'still ending')
    running.send('SIGINT')
    assert.equal(await running.ended, 130)
  })

  it('ends a process that is still starting at once', async () => {
    using running = await begin()
    running.send('SIGTERM')
    assert.equal(await running.ended, 143)
  })
})

it('endInTime ends a process that something keeps from ending', async () => {
  const hanging = `import { endInTime } from ${signalsFile}
    setInterval(() => {}, 1_000)
    endInTime({ warn: (event) => console.log(event) }, 1)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', hanging], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said, [exit]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  assert.deepEqual([exit, said], [0, 'stopped before all work was done\n'])
})

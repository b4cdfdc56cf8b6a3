import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'

const signalsFile = JSON.stringify(new URL('signals.ts', import.meta.url).href)

/** A process that takes long to end. Its clock stands still but for a message, and it prints how many signals it outlived. */
const program = `
  import { handleSignals } from ${signalsFile}
  let [clock, count] = [0, 0]
  performance.now = () => clock
  const signals = handleSignals()
  process.on('SIGINT', () => console.log('outlived ' + (count += 1)))
  setTimeout(() => process.exit(0), 600_000)
  console.log('starting')
  process.on('message', (message) => {
    if (message === 'start') signals.started()
    else clock += 1_000
    console.log('got ' + message)
  })
  console.log('stopped by ' + (await signals.stop))
`

async function begin(): Promise<{
  send: (signal: NodeJS.Signals) => void
  post: (message: 'start' | 'a second later') => Promise<void>
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
    post: (message) => (child.send(message), prints(`got ${message}`)),
    prints,
    ended,
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  }
}

describe('handleSignals', () => {
  it('counts a Ctrl-C that arrives twice, from the terminal and from npm, once; a later one ends the process', async () => {
    using running = await begin()
    await running.post('start')
    running.send('SIGINT')
    await running.prints('stopped by SIGINT')
    running.send('SIGINT')
    await running.prints('outlived 2')
    await running.post('a second later')
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

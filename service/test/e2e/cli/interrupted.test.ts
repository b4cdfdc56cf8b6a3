/** A command that writes to the chain and is interrupted, or whose service ends before it (spec §4.9, idempotency). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readConfig } from '../../../src/app/config/config.ts'
import type { Writer } from '../../../src/chain/transactions/writer.ts'
import { acquireDataFolder } from '../../../src/cli/session/data-directory-lock.ts'
import { commandRunner } from '../../../src/cli/store-commands.ts'
import { testFolder } from '../../support/folder.ts'
import { commandsOf, serviceCommandsOf } from '../../support/processes/cli.ts'
import { startWorld } from '../../support/world.ts'
import { useOpened } from '../../support/opened.ts'

describe('a command that is cut off', () => {
  const folder = testFolder()
  const world = useOpened(startWorld)

  /** Runs a command in a service that ends after its write to the chain. Returns the error of the caller. */
  async function cutOff(...line: string[]): Promise<string> {
    const { components, settings } = world
    const lock = await acquireDataFolder(folder)
    const write: Writer['write'] = async (...given) => {
      await components.writer.write(...given)
      void lock.release()
      return new Promise(() => {})
    }
    const service = { ...world, components: { ...components, writer: { ...components.writer, write } } }
    lock.serve(await commandRunner(readConfig(settings), service))
    const run = serviceCommandsOf(folder, folder)
    return run(...line).then(
      () => assert.fail('the command ended'),
      (error: Error) => error.message,
    )
  }

  it('mints once, when it is repeated as its error says', async () => {
    const mint = 'asset mint --count 2'
    const message = await cutOff(mint)
    const ended =
      /^The service ended before the command did\. Start it again, then repeat the command with --key (cli-\S+), which does it once\.$/
    const [, key = assert.fail(message)] = ended.exec(message) ?? []
    const { exit, out } = await commandsOf(world)(`${mint} --key ${key}`)
    assert.equal(exit, 0)
    assert.match(out, /done before under this key[^]*^asset {8}2 {2}MINTED$/m)
    assert.equal(await world.mint(), 3n)
  })

  it('names its key when it is interrupted, because a second signal ends it at once', async () => {
    const interrupted = new AbortController()
    const { writer } = world.components
    const write: Writer['write'] = (...given) => {
      interrupted.abort()
      return writer.write(...given)
    }
    const run = commandsOf(world, { writer: { ...writer, write } }, { signal: interrupted.signal })
    const { exit, out, err } = await run('asset mint')
    const named =
      /^touchstone: the transaction may be sent\. Wait for it, or repeat the command with --key (cli-\S+)\.$/
    const [, key = assert.fail(err)] = named.exec(err) ?? []
    assert.equal(exit, 0)
    assert.match(out, /^transaction /)
    assert.match((await commandsOf(world)('asset mint --key', key)).out, /done before under this key/)
  })

  it('sends nothing once it is interrupted', async () => {
    const before = await world.mint()
    const { exit, err } = await commandsOf(world, {}, { signal: AbortSignal.abort() })('asset mint')
    assert.deepEqual([exit, err], [1, 'touchstone: The command was interrupted before it sent anything.'])
    assert.equal(await world.mint(), before + 1n)
  })

  it('is repeated as it is, with a key of its own', async () => {
    const repeated = 'The service ended before the command did. Start it again, then repeat the command.'
    assert.equal(await cutOff('asset mint --key own'), repeated)
    assert.equal(await cutOff('asset mint --key=another'), repeated)
  })
})

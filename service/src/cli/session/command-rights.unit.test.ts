/** The table of commands is complete: a new command is in it before it can be run. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Command } from 'commander'
import { commandsWithin } from '../../../test/support/processes/commands.ts'
import { completionCommand } from '../completion.ts'
import { localCommands } from '../program.ts'
import { isStoreGroup, loadStoreCommands } from '../store-commands.ts'
import { defineCommand, defineGroup, inSession, subjectOf } from './command.ts'
import { commandRights } from './command-rights.ts'
import { runWithin } from './session.ts'

const nothing = () => Promise.resolve()
const inStore = (await loadStoreCommands())(nothing, () => {}, nothing)

describe('the rights of the local user', () => {
  it('are stated for every command, and for none that does not exist', async () => {
    const commands = [...(await localCommands()), completionCommand(new Command('touchstone')), ...inStore]
    const named = commands
      .flatMap((command) => commandsWithin(command))
      .map(({ path }) => path.join(' '))
      .toSorted()
    assert.deepEqual(
      named,
      Object.keys(commandRights).toSorted(),
      'commandRights of command-rights.ts name each command',
    )
  })

  it('do not let a command run that is in no list', async () => {
    let hasRun = false
    const run = async () => void (hasRun = true)
    const program = new Command('touchstone').addCommand(
      defineGroup('asset', 'x', [defineCommand('destroy', 'x', { examples: [] }).action(inSession(run, run))]),
    )
    const io = { out: () => {}, err: () => {}, cwd: '/', signal: new AbortController().signal }
    await assert.rejects(runWithin(program, ['asset', 'destroy'], io), /asset destroy is in no list of commands/)
    assert.equal(hasRun, false)
  })

  it('come with entries that name ids and files, and never the address of a tap', () => {
    const tapped = 'https://a.example/?picc=00112233445566778899AABBCCDDEEFF&cmac=0011223344556677'
    assert.deepEqual([5n, 'spring-2026', 'tags.csv', tapped, {}, undefined].map(subjectOf), [
      '5',
      'spring-2026',
      'tags.csv',
      '',
      '',
      '',
    ])
  })
})

describe('the groups of commands', () => {
  it('are loaded alone by their own names', async () => {
    for (const name of inStore.map((command) => command.name())) {
      assert.ok(isStoreGroup(name), name)
      const makeCommands = await loadStoreCommands(name)
      assert.deepEqual(
        makeCommands(nothing, () => {}, nothing).map((command) => command.name()),
        [name],
      )
    }
    for (const name of ['', 'help', 'constructor', '--help']) assert.ok(!isStoreGroup(name), name)
  })
})

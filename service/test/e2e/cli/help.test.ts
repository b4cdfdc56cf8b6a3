/** Help with examples, and wrong arguments that end in one sentence before anything is opened. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { Command, CommanderError } from 'commander'
import { completionCommand } from '../../../src/cli/completion.ts'
import { localCommands } from '../../../src/cli/program.ts'
import { runWithin } from '../../../src/cli/session/session.ts'
import { testFolder } from '../../support/folder.ts'
import { commandsWithin } from '../../support/processes/commands.ts'
import { captureIo, cli, type Ran, touchstone } from '../../support/processes/cli.ts'
import { loadStoreCommands } from '../../../src/cli/store-commands.ts'

const makeStoreCommands = await loadStoreCommands()
const opensNothing = () => Promise.reject(new Error('a session was opened'))

async function run(...argv: string[]): Promise<Ran> {
  const { io, ran } = captureIo('/')
  const program = new Command('touchstone')
  for (const command of makeStoreCommands(opensNothing, io.out, opensNothing)) program.addCommand(command)
  const exit = await runWithin(program, argv, io).then(
    () => 0,
    (error: unknown) => {
      if (!(error instanceof CommanderError)) io.err(`touchstone: ${(error as Error).message}`)
      return error instanceof CommanderError ? error.exitCode : 1
    },
  )
  return ran(exit)
}

/** Returns the printed help with its examples. */
function helpOf(command: Command): string {
  let text = ''
  command.configureOutput({ writeOut: (part) => void (text += part) })
  command.outputHelp()
  return text
}

const local = await localCommands()
const leaves = makeStoreCommands(opensNothing, () => {}, opensNothing)
  .flatMap((command) => commandsWithin(command))
  .map(({ path }) => path)

describe('the help of touchstone', () => {
  for (const words of leaves) {
    it(`shows what ${words.join(' ')} does, with an example`, async () => {
      const { exit, out, err } = await run(...words, '--help')
      assert.deepEqual([exit, err], [0, ''])
      assert.ok(out.includes(`Usage: touchstone ${words.join(' ')}`), out)
      assert.match(out, /Examples?:\n {2}(touchstone|curl) /)
      assert.doesNotMatch(out, /\S {4,}--\w/, 'a line of an example goes on in a line of its own, after a backslash')
    })
  }

  for (const command of [...local, completionCommand(new Command('touchstone'))]) {
    it(`shows what ${command.name()} does, with an example`, () => {
      assert.match(helpOf(command), /Examples?:\n {2}touchstone /)
    })
  }

  it('names the exit codes of every command', async () => {
    for (const words of leaves) assert.match((await run(...words, '--help')).out, /exit code/i, words.join(' '))
  })

  it('has JSON of every command that prints a result', () => {
    const isWithout = (command: Command) =>
      !command.options.some(({ long }) => long === '--json' || long === '--format')
    const all = local.filter((command) => !['dev', 'serve'].includes(command.name()))
    const inStore = makeStoreCommands(opensNothing, () => {}, opensNothing)
    // These print JSON Lines anyway.
    assert.deepEqual(
      [...all, ...inStore]
        .flatMap((command) => commandsWithin(command))
        .flatMap(({ path, command }) => (isWithout(command) ? [path.join(' ')] : [])),
      ['audit export', 'privacy export'],
      'commands without --json',
    )
  })

  it('names the command or option that a wrong word was meant to be', async () => {
    for (const [line, meant] of [
      ['tag bach', 'batch'],
      ['tag batch list --jsn', '--json'],
    ] as const)
      assert.match((await run(...line.split(' '))).err, new RegExp(`\\(Did you mean ${meant}\\?\\)`))
  })

  it('says of every command that writes to the chain that it can be tried first', async () => {
    for (const name of [
      'mint',
      'metadata',
      'bind',
      'activate',
      'claim',
      'flag',
      'resolve',
      'recycle',
      'announce-recycle',
    ])
      assert.match((await run('asset', name, '--help')).out, /--dry-run .*\n[^]*--key <key>/)
  })
})

describe('touchstone completion', () => {
  const { child, ended } = touchstone(['completion', 'bash'], {})
  after(() => child.kill())

  it('completes commands and options in bash, and leaves file names to bash', async () => {
    const { out } = await ended
    const completed = (...words: string[]) => {
      const asking = `COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _touchstone; echo "\${COMPREPLY[*]}"`
      return execFileSync('bash', ['-c', `${out}\n${asking}`, 'bash', 'touchstone', ...words], {
        encoding: 'utf8',
      }).trim()
    }
    assert.equal(completed('veri'), 'verify')
    assert.equal(completed('tag', 'batch', 'cre'), 'create')
    assert.equal(completed('verify', '5', '--depl'), '--deployment')
    assert.equal(completed('tag', 'import', 'tags.c'), '')
  })

  /** Commands that print what each other shell would offer behind the words of its arguments. `$0` is the file of the script. */
  const asking = {
    zsh: `compdef() {}; _files() {}; _describe() { print -l -- $reply }; source $0; words=("$@"); CURRENT=$#; _touchstone`,
    fish: 'source $argv[1]; complete -C "$argv[2..-1]"',
  } as const
  for (const shell of ['zsh', 'fish'] as const) {
    const isThere = spawnSync(shell, ['--version']).status === 0
    it(`completes commands and options in ${shell}`, { skip: isThere ? false : `there is no ${shell}` }, async () => {
      const script = join(testFolder(), 'completion')
      writeFileSync(script, (await touchstone(['completion', shell], {}).ended).out)
      const offered = (...words: string[]) => {
        const { stdout, stderr } = spawnSync(shell, ['-c', asking[shell], script, 'touchstone', ...words], {
          encoding: 'utf8',
          env: { PATH: process.env['PATH'], HOME: testFolder() },
        })
        assert.equal(stderr, '')
        return stdout
      }
      assert.match(offered('veri'), /^verify[:\t]Checks a verdict/m)
      assert.match(offered('tag', 'batch', 'cre'), /^create[:\t]Makes a batch/m)
      assert.match(offered('verify', '5', '--depl'), /^--deployment[:\t]known deployment/m)
      assert.doesNotMatch(offered('tag', 'import', 'tags.c'), /^(?:verify|create)/m)
    })
  }
})

describe('colours', { skip: spawnSync('script', ['--version']).status === 0 ? false : 'there is no script(1)' }, () => {
  /** Returns what a terminal shows of a command that has much to say without any setting. */
  const onTerminal = (env: object) => {
    const command = `'${process.execPath}' '${cli}' doctor`
    const settings = { PATH: process.env['PATH'], TERM: 'xterm-256color', DATA_DIR: '/nonexistent', ...env }
    return spawnSync('script', ['-qec', command, '/dev/null'], { env: settings, encoding: 'utf8' }).stdout
  }

  it('are for a terminal without NO_COLOR, and for nothing else', () => {
    assert.ok(onTerminal({}).includes('\u001b[32mok '))
    assert.ok(!onTerminal({ NO_COLOR: '1' }).includes('\u001b'))
    const piped = spawnSync(process.execPath, [cli, 'doctor'], { env: { DATA_DIR: '/nonexistent' }, encoding: 'utf8' })
    assert.match(piped.stdout, /^ {2}ok /)
  })
})

const wrong: readonly (readonly [string, RegExp])[] = [
  ['tag bogus', /unknown command 'bogus'/],
  ['start', /unknown command 'start': touchstone dev starts a demonstration, touchstone serve a service, and /],
  ['tag batch create', /missing required argument 'id': \S.*\.\n?$/],
  ['tag batch create two words', /too many arguments/],
  ['tag batch create ../x', /A batch id has 1 to 64 of/],
  ['tag batch create x --epoch -1', /An epoch is 0, 1, 2/],
  ['tag batch create x --mac-input enc', /one of empty, picc/],
  ['tag batch import x --scheme boltcard --master-file f', /one of an10922, .*, boltcard-v1, boltcard-v2\./],
  ['tag batch import x --scheme direct', /required option '--master-file <file>' not specified/],
  ['tag batch import x --scheme direct --master-file f --file-key-no 5', /A slot is 0, 1, 2, 3 or 4/],
  ['tag template', /Give the address/],
  ['tag keys --batch b', /Give the address/],
  ['tag keys --batch b --uid 08AA --host a.example', /begins with 04/],
  [
    'tag keys --batch b --uid 04DE5F1EACC040 --host a.example --format xml',
    /Allowed choices are json, csv, gototags, apdu/,
  ],
  ['tag keys --batch b --uid 04DE5F1EACC040 --host a.example --url x', /cannot be used with option/],
  ['tag verify not-a-url', /It is a URL, in quotes/],
  ['tag emulate --count 0', /a number from 1 to 1000/],
  ['asset show 0x7', /A token id is a decimal number/],
  ['asset mint --count 201', /a number from 1 to 200/],
  ['asset mint --to 0x123', /An address is 0x and 40 hex digits/],
  ['asset bind 1 --uid 04DE5F1EACC040', /required option '--batch <id>' not specified/],
  [
    'asset flag 1',
    /required option '--reason <reasons>' not specified: lost, stolen, .*several separated by commas\.\n?$/,
  ],
  ['asset flag 1 --reason gone', /A reason is one of lost, stolen/],
  ['asset claim 1 --consent nothing', /A signature is 0x and hex digits/],
]

describe('commands of tags and keys', () => {
  it('print JSON on request', async () => {
    /** `tag keys` has --format. */
    const others = new Set(['tag keys'])
    const named = leaves.filter(([group]) => group === 'tag' || group === 'key').map((words) => words.join(' '))
    const without: string[] = []
    for (const name of named) {
      const { out } = await run(...name.split(' '), '--help')
      if (!out.includes('  --json ') && !others.has(name)) without.push(name)
    }
    assert.ok(named.length > 15)
    assert.deepEqual(without, [])
  })
})

describe('wrong arguments', () => {
  for (const [line, sentence] of wrong) {
    it(`end in one sentence: touchstone ${line}`, async () => {
      const { exit, out, err } = await run(...line.split(' '))
      assert.deepEqual([exit, out], [1, ''])
      assert.match(err, /^touchstone: [^\n]+$/)
      assert.match(err, sentence)
    })
  }

  it('fails with one sentence where its output cannot be written', () => {
    const full = openSync('/dev/full', 'w')
    const { status, stderr } = spawnSync(process.execPath, [cli, 'completion', 'bash'], {
      stdio: ['ignore', full, 'pipe'],
    })
    closeSync(full)
    assert.equal(status, 1)
    assert.match(String(stderr), /^touchstone: The output cannot be written \(ENOSPC\)[^\n]+\n$/)
  })
})

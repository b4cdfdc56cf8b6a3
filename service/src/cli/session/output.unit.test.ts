import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseHead } from '../tag/import/rows.ts'
import { Command } from 'commander'
import { CommandError, formatError, outputErrorOf } from './output.ts'

describe('the error of a command', () => {
  it('moves no cursor and sets no title, whatever the file of another says', () => {
    const head = ['uid', '\u001b]0;owned\u0007\u001b[2J\u009b31m\u202eall is well']
    const error = (() => {
      try {
        return parseHead(head, { batch: 'b' })
      } catch (thrown) {
        return thrown
      }
    })()
    const text = formatError(error)
    assert.match(text, /^The first line names a column ".*all is well"; columns are uid, /)
    assert.doesNotMatch(text, /[\p{Cc}\p{Cf}]/u)
  })

  it('says where the limit of open files is raised', () => {
    const error = Object.assign(new Error('EMFILE: too many open files, scandir'), { code: 'EMFILE' })
    assert.match(formatError(error), /^Too many files are open \(EMFILE\)\. Raise the limit: ulimit -n/)
  })

  it('keeps its lines', () => {
    const lines = 'Two rows must be corrected.\n  line 3: …\n\tline 4: …'
    assert.equal(formatError(new CommandError(lines)), lines)
  })
})

describe('an error of the command line', () => {
  async function said(command: Command, ...argv: string[]): Promise<string> {
    let text = ''
    command
      .exitOverride()
      .configureOutput({ writeErr: (part) => void (text += part), outputError: outputErrorOf(command) })
    await command.parseAsync(argv, { from: 'user' }).catch(() => {})
    return text
  }

  it('says what the missing argument or option is', async () => {
    const verify = () => new Command('verify').argument('<verdict>', 'URL of a verdict, or a token id')
    assert.equal(
      await said(verify()),
      "touchstone: missing required argument 'verdict': URL of a verdict, or a token id.\n",
    )
    const flag = new Command('flag').requiredOption('--reason <reasons>', 'lost, stolen')
    assert.equal(await said(flag), "touchstone: required option '--reason <reasons>' not specified: lost, stolen.\n")
  })

  it('says where the settings and the commands are', async () => {
    assert.equal(
      await said(new Command('dev'), '--port', '9090'),
      "touchstone: unknown option '--port': settings are variables, such as VERIFICATION_PORT, and touchstone serve --help lists them.\n",
    )
    const program = new Command('touchstone').addCommand(new Command('serve')).addCommand(new Command('dev'))
    assert.match(await said(program, 'launch'), /^touchstone: unknown command 'launch': touchstone dev starts .*\.\n$/)
    assert.match(await said(program, 'serv'), /^touchstone: unknown command 'serv' \(Did you mean serve\?\)\n$/)
  })
})

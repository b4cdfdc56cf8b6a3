/**
 * The options of a program of this repository. `--help` prints the comment at the head of its file.
 */
import { readFileSync } from 'node:fs'
import { parseArgs, type ParseArgsConfig } from 'node:util'

/**
 * Parses the command line of this process. It ends the process after `--help`, and with exit code 2 for an option that does not exist: the
 * error says which, and the help follows.
 */
export function readOptions<const Config extends ParseArgsConfig>(
  config: Config,
): ReturnType<typeof parseArgs<Config>> {
  if (process.argv.slice(2).includes('--help')) {
    console.log(helpOf(process.argv[1] ?? ''))
    process.exit(0)
  }
  try {
    return parseArgs(config)
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${helpOf(process.argv[1] ?? '')}`)
    process.exit(2)
  }
}

/** Returns the comment at the head of a source file, as plain text. */
function helpOf(file: string): string {
  const [, comment = ''] = /\/\*\*(.*?)\*\//s.exec(readFileSync(file, 'utf8')) ?? []
  return comment.replaceAll(/^ *\* ?/gm, '').trim()
}

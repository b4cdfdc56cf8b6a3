/** Runs a command in the service that holds the data folder, before the program of this process is loaded: loading takes a second. */
import { readConfig } from '../../app/config/config.ts'
import { reasonOf } from '../../lib/errors.ts'
import { runInService } from './control-client.ts'

/** Groups of commands that a running service runs. Their help is always printed by this process. */
const groups: ReadonlySet<string> = new Set(['asset', 'attest', 'index', 'key', 'tag'])

/** Returns false when this process must run the command itself: no service holds the folder, or the command is no work for one. */
export async function forwardToService(argv: readonly string[]): Promise<boolean> {
  const [group = '', ...words] = argv
  const isHelp = words.length === 0 || words.some((word) => ['--help', '-h', 'help'].includes(word))
  if (!groups.has(group) || isHelp) return false
  const dataDir = configuredDataDir()
  if (dataDir === null) return false
  const io = {
    out: (line: string) => void process.stdout.write(`${line}\n`),
    err: (line: string) => void process.stderr.write(`${line}\n`),
    cwd: process.cwd(),
    signal: new AbortController().signal,
  }
  try {
    const exit = await runInService(dataDir, argv, io)
    if (exit === null) return false
    process.exitCode = exit
  } catch (error) {
    io.err(`touchstone: ${reasonOf(error)}`)
    process.exitCode = 1
  }
  return true
}

/** Returns null for wrong settings, which the program reports. */
function configuredDataDir(): string | null {
  try {
    return readConfig(process.env).dataDir
  } catch {
    return null
  }
}

/**
 * Runs commands of the program one after another in one process, for `warmProgram`. What a command writes and its exit code are sent to the
 * parent. `process.exit` ends the command, not this process.
 */
import { runCli } from '../../../src/cli/program.ts'

type Job = { readonly args: readonly string[]; readonly cwd: string }

class Exited extends Error {}

const [node = '', program = ''] = process.argv

process.on('message', ({ args, cwd }: Job) => void runJob(args, cwd).then((ran) => process.send?.(ran)))

async function runJob(args: readonly string[], cwd: string) {
  let [out, err] = ['', '']
  let isDone = false
  process.chdir(cwd)
  process.argv = [node, program, ...args]
  process.exitCode = undefined
  const write = (keep: (text: string) => void) => (chunk: unknown) => {
    if (!isDone) keep(String(chunk))
    return true
  }
  process.stdout.write = write((text) => (out += text)) as typeof process.stdout.write
  process.stderr.write = write((text) => (err += text)) as typeof process.stderr.write
  const exited = new Promise<unknown>((resolve) => {
    process.exit = (code) => {
      isDone = true
      resolve(code ?? process.exitCode ?? 0)
      throw new Exited()
    }
  })
  const exit = await Promise.race([exited, runCli().then(() => process.exitCode ?? 0)])
  isDone = true
  return { exit: Number(exit), out, err }
}

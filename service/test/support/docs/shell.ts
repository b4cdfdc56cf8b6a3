/**
 * A shell for the commands of the documentation. `touchstone` goes straight to the running service where the program would send it there,
 * because a start of the program costs more than the work of most commands.
 */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { serviceGroups } from '../../../src/cli/session/control-client.ts'
import { testFolder } from '../folder.ts'
import { cli, inherited, serviceCommandsOf } from '../processes/cli.ts'

export type Shell = Awaited<ReturnType<typeof startShell>>

/** `env` has the DATA_DIR of the running service; `folder` is the folder of the commands. */
export async function startShell(env: Readonly<{ DATA_DIR: string }>, folder: string) {
  const inService = serviceCommandsOf(env.DATA_DIR, folder)
  const outputs = testFolder()
  let count = 0

  /** Writes what the command printed into two files and returns its exit code and their name. */
  async function answer(argv: readonly string[]): Promise<string> {
    const { exit, out, err } = await inService(...argv)
    const name = join(outputs, String(++count))
    await writeFile(`${name}.out`, out === '' ? '' : `${out}\n`)
    await writeFile(`${name}.err`, err === '' ? '' : `${err}\n`)
    return `${exit} ${name}`
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      answer(Buffer.concat(chunks).toString().split('\0').slice(0, -1)).then(
        (text) => response.end(text),
        () => response.destroy(),
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  return {
    run: (line: string) =>
      promisify(execFile)('/bin/bash', ['-c', `${functions(port)}\n${line}`], {
        cwd: folder,
        env: { ...inherited, ...env },
        timeout: 300_000,
        maxBuffer: 64 * 1024 * 1024,
      }),
    close: () => server.close().closeAllConnections(),
  }
}

/** Other groups than those of the service, such as `verify`, are run by the program itself. */
const functions = (port: number) => `touchstone() {
  case ' ${[...serviceGroups].join(' ')} ' in
    *" $1 "*) ;;
    *) '${process.execPath}' '${cli}' "$@"; return ;;
  esac
  local ran
  ran=($(printf '%s\\0' "$@" | curl -sS --data-binary @- http://127.0.0.1:${port}/)) || return 1
  cat "\${ran[1]}.out"
  cat "\${ran[1]}.err" >&2
  return "\${ran[0]}"
}`

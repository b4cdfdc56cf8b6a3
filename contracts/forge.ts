/** Runs forge, npm's binary without its wrapper script, in this folder. */
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { text } from 'node:stream/consumers'
import { delimiter, dirname, join } from 'node:path'

/** Returns the exit code and both outputs. Throws where forge does not start. */
export async function forge(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = spawn(forgeBinary(), args, {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'pipe', 'pipe'],
    // The compiler wrapper is started by forge through `env node`: it gets the Node that runs this.
    env: {
      ...process.env,
      ...env,
      NO_COLOR: '1',
      PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`,
    },
  })
  const exit = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  return { failed: (await exit) !== 0, stdout, stderr }
}

function forgeBinary(): string {
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch
  const manifest = `@foundry-rs/forge-${process.platform}-${architecture}/package.json`
  const file = process.platform === 'win32' ? 'forge.exe' : 'forge'
  return join(dirname(createRequire(import.meta.url).resolve(manifest)), 'bin', file)
}

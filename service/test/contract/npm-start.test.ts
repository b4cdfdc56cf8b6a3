/** `npm start` where the machine has an old Node, and npm ran no script that installs Node 24. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { testFolder } from '../support/folder.ts'

const root = new URL('../../../', import.meta.url)
const { scripts } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as {
  scripts: { prestart: string; start: string }
}

/** Returns a folder with the files that `npm start` begins with, and a PATH that has an old Node only. */
function oldMachine() {
  const folder = testFolder()
  for (const path of ['old', 'service/src']) mkdirSync(join(folder, path), { recursive: true })
  const old =
    '#!/bin/sh\ncase $1 in --version) echo v20.20.2 ;; *) echo "TypeError: Unknown file extension" >&2; exit 1 ;; esac\n'
  writeFileSync(join(folder, 'old/node'), old, { mode: 0o755 })
  cpSync(new URL('service/bin', root), join(folder, 'service/bin'), { recursive: true })
  const run = (script: string) =>
    spawnSync('/bin/sh', ['-c', script], {
      cwd: folder,
      encoding: 'utf8',
      env: { PATH: `${join(folder, 'old')}:/usr/bin:/bin` },
    })
  return { folder, run }
}

describe('npm start on a machine with an old Node', () => {
  it('ends with one sentence when Node 24 was not installed', () => {
    const { run } = oldMachine()
    const [before, start] = [run(scripts.prestart), run(scripts.start)]
    assert.deepEqual([before.status, before.stdout, before.stderr], [0, '', ''])
    assert.match(
      start.stderr,
      /^touchstone: The service needs Node 24 or newer; the machine has v20\.20\.2\. Install it, or .* install scripts\.\n$/,
    )
    assert.equal(start.status, 2)
  })

  it('takes the Node 24 of its packages, with its own options', () => {
    const { folder, run } = oldMachine()
    const bin = join(folder, 'node_modules/node/bin')
    mkdirSync(bin, { recursive: true })
    writeFileSync(join(bin, 'node'), '#!/bin/sh\n[ "$1" = --version ] || echo "$NODE_OPTIONS: $*"\n', { mode: 0o755 })
    const { stdout, stderr } = run(scripts.start)
    assert.match(stdout, /^--max-semi-space-size=4 : \S*\/service\/src\/cli\.ts dev\n$/, stderr)
  })
})

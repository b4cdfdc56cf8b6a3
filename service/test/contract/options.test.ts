/** The programs of benches and scripts: their help, and what an option that does not exist gets. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { testFolder } from '../support/folder.ts'

const root = new URL('../../../', import.meta.url)
const folder = testFolder()

const program = join(folder, 'program.ts')
writeFileSync(
  program,
  `/**
 * \`npm run program\` does one thing.
 * \`--times N\` does it N times.
 */
import { readOptions } from ${JSON.stringify(new URL('scripts/options.ts', root).href)}
const { values } = readOptions({ options: { times: { type: 'string', default: '1' } } })
console.log(values.times)
`,
)
function run(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' })
  return { status, stdout, stderr }
}

describe('a program of this repository', () => {
  const help = '`npm run program` does one thing.\n`--times N` does it N times.\n'

  it('takes its options', () => {
    assert.deepEqual(run('--times', '3'), { status: 0, stdout: '3\n', stderr: '' })
  })

  it('prints the comment at the head of its file for --help, and does nothing', () => {
    assert.deepEqual(run('--times', '3', '--help'), { status: 0, stdout: help, stderr: '' })
  })

  it('names an option that does not exist, prints its help, and does nothing', () => {
    assert.deepEqual(run('--tmies', '3'), { status: 2, stdout: '', stderr: `Unknown option '--tmies'\n\n${help}` })
  })

  it('reads its options so, each that package.json runs', () => {
    const { scripts } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as {
      scripts: Readonly<Record<string, string>>
    }
    const files = Object.values(scripts).flatMap(
      (command) => /^node (?:--\S+ )*((?:bench|contracts|scripts)\/\S+)/.exec(command)?.[1] ?? [],
    )
    assert.ok(files.length > 20)
    const others = files.filter((file) => !/\breadOptions\(/.test(readFileSync(new URL(file, root), 'utf8')))
    assert.deepEqual(others, [], `these ignore --help; use ${fileURLToPath(new URL('scripts/options.ts', root))}`)
  })
})

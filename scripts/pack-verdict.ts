/**
 * `node scripts/pack-verdict.ts [--pack]`: writes the publishable form of the client library to verdict/dist,
 * JavaScript with declarations beside the sources that its maps point at. With `--pack` it also makes the npm tarball
 * there and prints its path.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../', import.meta.url))
const source = `${root}verdict`
const target = `${source}/dist`

buildPackage()
if (process.argv.includes('--pack')) console.log(`${target}/${packed()}`)

function buildPackage(): void {
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target)
  cpSync(`${source}/src`, `${target}/src`, { recursive: true, filter: (file) => !file.endsWith('.test.ts') })
  execFileSync(`${root}node_modules/.bin/tsc`, ['-p', `${source}/tsconfig.build.json`], { stdio: 'inherit' })
  copyFileSync(`${source}/README.md`, `${target}/README.md`)
  copyFileSync(`${root}LICENSE`, `${target}/LICENSE`)
  writeFileSync(`${target}/package.json`, `${JSON.stringify(manifest(), null, 2)}\n`)
}

/** The workspace's own manifest, but public and pointing at the built files. */
function manifest(): Record<string, unknown> {
  const { private: _, ...own } = JSON.parse(readFileSync(`${source}/package.json`, 'utf8')) as Record<string, unknown>
  const exports = { '.': { types: './lib/index.d.ts', default: './lib/index.js' } }
  return { ...own, exports, files: ['lib', 'src'] }
}

/** Name of the tarball. No script may run while packing. */
function packed(): string {
  const answer = execFileSync('npm', ['pack', '--json', '--ignore-scripts'], { cwd: target, encoding: 'utf8' })
  const [tarball] = JSON.parse(answer) as { filename: string }[]
  if (tarball === undefined) throw new Error('npm pack made nothing')
  return tarball.filename
}

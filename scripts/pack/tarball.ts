/** Makes the tarball of a folder, as npm does. The same content makes the same bytes. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../', import.meta.url))

/** The Node versions that npm accepts without a warning. */
export const engines = { node: '>=20.19.0' }

/** Fills a folder with `build`, adds licence and manifest, and returns the path of its tarball in `out`. No script runs. */
export function packed(
  out: string,
  manifest: Readonly<Record<string, unknown>>,
  build: (folder: string) => void,
): string {
  mkdirSync(join(root, 'dist'), { recursive: true })
  const folder = mkdtempSync(join(root, 'dist/pack-')) // within the project, where the compiler finds its packages
  try {
    build(folder)
    copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
    writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
    const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', out]
    const answer = execFileSync('npm', args, { cwd: folder, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
    const [tarball] = JSON.parse(answer) as { filename: string }[]
    if (tarball === undefined) throw new Error('npm pack made nothing.')
    return join(out, tarball.filename)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Runs the TypeScript compiler of this checkout on a project. */
export function compile(project: string): void {
  execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', project], { stdio: 'inherit' })
}

/** The package of the client library: JavaScript with declarations, beside the sources that its maps point at. */
import { copyFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { compile, packed, root } from './tarball.ts'

export function packLibrary(out: string): string {
  return packed(out, manifest(), (folder) => {
    const compilerOptions = { rootDir: 'src', outDir: 'lib', noCheck: true } // npm run check does
    const project = { extends: join(root, 'verdict/tsconfig.build.json'), compilerOptions, include: ['src'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(project))
    cpSync(join(root, 'verdict/src'), join(folder, 'src'), {
      recursive: true,
      filter: (file) => !file.endsWith('.test.ts'),
    })
    compile(join(folder, 'tsconfig.json'))
    copyFileSync(join(root, 'verdict/README.md'), join(folder, 'README.md'))
  })
}

/** The workspace's own manifest, but public and pointing at the built files. */
function manifest(): Record<string, unknown> {
  const { private: _, ...own } = JSON.parse(readFileSync(join(root, 'verdict/package.json'), 'utf8')) as Record<
    string,
    unknown
  >
  const exports = { '.': { types: './lib/index.d.ts', default: './lib/index.js' } }
  return { ...own, exports, files: ['lib', 'src'] }
}

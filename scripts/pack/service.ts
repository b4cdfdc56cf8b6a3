/**
 * The package of the service: the folders of this project as JavaScript, because Node strips no types below node_modules. Node 24
 * comes as an optional package of the platform, and the program is started with it whatever the machine's own Node is.
 */
import { chmodSync, copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { packageNames } from '../../service/src/domain/release.ts'
import { programVersion } from '../../service/src/lib/version.ts'
import { compile, engines, packed, root } from './tarball.ts'

/** Platforms for which the embedded chain and Node exist as packages. */
const platforms = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64']

/** Packages of which only files are served. With them a hundred others would be installed, one of which reports the installation. */
const vendored = {
  graphiql: ['package.json', 'LICENSE', 'graphiql.min.js', 'graphiql.min.css'],
  'swagger-ui-dist': [
    'package.json',
    'LICENSE',
    'NOTICE',
    'swagger-ui-bundle.js',
    'swagger-ui-bundle.js.LICENSE.txt',
    'swagger-ui.css',
  ],
}

const readme = `# ${packageNames.service}

The self-hosted verification service, with Node 24 in one of its packages.

    touchstone dev            everything on this machine: a chain, a catalogue, a database, the service
    touchstone serve --help   the settings of a real one
    touchstone doctor         what is wrong with them

The documentation is at /docs of the service, and in the folder docs of this package.
`

/** `packages` are the tarballs that the service offers to its readers. */
export function packService(out: string, packages: readonly string[]): string {
  return packed(out, manifest(), (folder) => {
    const project = {
      extends: join(root, 'tsconfig.json'),
      compilerOptions: {
        rootDir: root,
        outDir: folder,
        noEmit: false,
        noCheck: true,
        rewriteRelativeImportExtensions: true,
        target: 'esnext',
      },
      include: [join(root, 'service/src'), join(root, 'verdict/src')],
      exclude: ['**/*.test.ts', '**/_*.ts'].map((pattern) => join(root, pattern)),
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(project))
    compile(join(folder, 'tsconfig.json'))
    copyOthers(folder, 'service/src')
    for (const path of ['service/openapi.yaml', 'NOTICE']) copyFileSync(join(root, path), join(folder, path))
    cpSync(join(root, 'docs'), join(folder, 'docs'), { recursive: true })
    cpSync(join(root, 'service/bin'), join(folder, 'service/bin'), { recursive: true })
    chmodSync(join(folder, 'service/bin/touchstone'), 0o755)
    for (const [name, files] of Object.entries(vendored))
      for (const file of files) copyInto(join(root, 'node_modules', name, file), join(folder, 'vendor', name, file))
    for (const path of packages) copyInto(path, join(folder, 'dist/packages', path.split('/').at(-1) ?? ''))
    for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
      if (file.endsWith('.js') && !file.startsWith('vendor/')) nameFiles(folder, file)
    writeFileSync(join(folder, 'README.md'), readme)
  })
}

function manifest(): Record<string, unknown> {
  const { description, license, dependencies } = JSON.parse(
    readFileSync(join(root, 'service/package.json'), 'utf8'),
  ) as {
    description: string
    license: string
    dependencies: Record<string, string>
  }
  const {
    dependencies: { node = '' },
  } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: { node?: string } }
  const used = Object.entries(dependencies).filter(([name]) => !Object.hasOwn(vendored, name))
  return {
    name: packageNames.service,
    version: programVersion,
    description,
    license,
    type: 'module',
    bin: { touchstone: 'service/bin/touchstone' },
    files: ['contracts', 'dist', 'docs', 'service', 'vendor', 'verdict', 'NOTICE'],
    dependencies: Object.fromEntries(used),
    optionalDependencies: Object.fromEntries(platforms.map((platform) => [`node-${platform}`, node])),
    engines,
  }
}

/** Copies what is no TypeScript: migrations, texts, style sheets. */
function copyOthers(folder: string, path: string): void {
  cpSync(join(root, path), join(folder, path), { recursive: true, filter: (file) => !/\.tsx?$/.test(file) })
}

function copyInto(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true })
  copyFileSync(from, to)
}

/**
 * Names the files of the library and of vendored packages by their paths. So nothing is looked up by a name that the release does not own.
 */
function nameFiles(folder: string, file: string): void {
  const places = {
    [packageNames.library]: 'verdict/src/index.js',
    'graphiql/package.json': 'vendor/graphiql/package.json',
    'swagger-ui-dist/package.json': 'vendor/swagger-ui-dist/package.json',
  }
  let text = readFileSync(join(folder, file), 'utf8')
  for (const [name, place] of Object.entries(places)) {
    const path = relative(dirname(file), place)
    const named = `'${path.startsWith('.') ? path : `./${path}`}'`
    for (const before of ['from ', 'import(', 'resolve(']) text = text.replaceAll(`${before}'${name}'`, before + named)
  }
  const [source] = /new URL\([^)\n]*\.ts\b/.exec(text) ?? []
  if (source !== undefined)
    throw new Error(`${file} names a source, which the package does not hold: ${source}. Use moduleUrl.`)
  writeFileSync(join(folder, file), text)
}

/** The architecture as a table: which folder may import which, how large a folder may grow, and names (ARCHITECTURE.md). */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const source = join(root, 'service/src/')
const library = join(root, 'verdict/src/')

/** Folders that a folder may import besides itself and `@touchstone/verdict`, by the table of ARCHITECTURE.md. The longest matching name counts. */
const mayImport: Readonly<Record<string, readonly string[]>> = { ...readTable(), 'cli.ts': ['cli'] }

/** Folders of the client library, and those that each may import besides itself; its root is the empty name. */
const libraryMayImport: Readonly<Record<string, readonly string[]>> = {
  lib: [],
  rules: ['lib'],
  proof: ['lib'],
  check: ['lib', 'rules', 'proof', ''],
  attestation: ['lib', 'rules', 'check'],
  '': ['lib', 'rules', 'proof', 'check', 'attestation'],
}

/** A folder with more source files holds more than one concept. */
const mostFiles = 12

const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
const isSource = (name: string): boolean => name.endsWith('.ts') && !name.endsWith('.test.ts')
const sources = files.filter(isSource)
const librarySources = readdirSync(library, { recursive: true, encoding: 'utf8' }).filter(isSource)

describe('the import table', () => {
  for (const name of files) {
    it(`${name} imports only what its folder may`, () => {
      const folder = ruleOf(name.replace(/(?:\.unit)?\.test\.ts$/, '.ts'))
      for (const target of importsOf(join(source, name))) {
        if (name.endsWith('.test.ts') && target.includes('/test/')) continue
        const to = relative(source, resolve(dirname(join(source, name)), target))
        if (to.startsWith('../../contracts/artifacts/') || to === '../package.json') continue // data, no code
        assert.ok(!to.startsWith('..'), `${name} imports from outside service/src: ${target}`)
        if (ruleOf(to) === folder) continue
        const allowed = (mayImport[folder] ?? []).some((other) => to === other || to.startsWith(`${other}/`))
        assert.ok(
          allowed,
          `${name} imports ${to}; by the table of ARCHITECTURE.md ${folder} may import ${(mayImport[folder] ?? []).join(', ')}`,
        )
      }
    })
  }

  for (const place of ['service/src', 'service/test', 'verdict/src', 'bench', 'scripts', 'contracts'])
    it(`holds no cycle of files in ${place}, types included`, () => {
      const folder = join(root, place)
      const done = new Set<string>()
      function visit(file: string, path: readonly string[]): void {
        const cycle = [...path.slice(path.indexOf(file)), file].map((name) => relative(folder, name))
        assert.ok(!path.includes(file), `a cycle: ${cycle.join(' → ')}`)
        if (done.has(file) || !file.endsWith('.ts') || !existsSync(file)) return // a text may look like an import
        for (const target of importsOf(file)) visit(resolve(dirname(file), target), [...path, file])
        done.add(file)
      }
      const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      for (const name of names)
        if (name.endsWith('.ts') && !name.includes('node_modules')) visit(join(folder, name), [])
      assert.ok(done.size > 10)
    })

  it('of ARCHITECTURE.md names folders that exist', () => {
    assert.ok(Object.keys(mayImport).length > 20, 'the table is read')
    for (const name of [...Object.keys(mayImport), ...Object.values(mayImport).flat()])
      assert.ok(
        existsSync(join(source, name)),
        `the table of ARCHITECTURE.md names ${name}, which is not in service/src`,
      )
  })

  it('lets only app/config read the environment', () => {
    for (const name of sources.filter((file) => !file.startsWith('app/config/') && !file.startsWith('cli/')))
      assert.ok(!readFileSync(join(source, name), 'utf8').includes('process.env'), `${name} reads process.env`)
  })

  it('keeps the client library free of the service and of Node', () => {
    const folderOf = (name: string) => name.split('/').slice(0, -1).join('/')
    for (const name of librarySources)
      for (const target of importsOf(join(library, name), /^/)) {
        if (target.startsWith('@noble/')) continue
        const folder = folderOf(relative(library, join(library, dirname(name), target)))
        const isOwn = /^\.{1,2}\//.test(target) && Object.hasOwn(libraryMayImport, folder)
        const allowed = [folderOf(name), ...(libraryMayImport[folderOf(name)] ?? [])]
        assert.ok(isOwn && allowed.includes(folder), `${name} imports ${target}`)
      }
  })
})

describe('the layout', () => {
  const folders = new Map<string, string[]>()
  for (const name of [...sources, ...librarySources.map((file) => `verdict/${file}`)])
    folders.set(dirname(name), [...(folders.get(dirname(name)) ?? []), basename(name, '.ts')])

  for (const [folder, names] of folders) {
    it(`${folder} holds at most ${mostFiles} source files, no three with the same first word`, () => {
      assert.ok(names.length <= mostFiles, `${folder} holds ${names.length} files; which concepts are in it?`)
      for (const word of names.map((name) => name.split('-')[0])) {
        const family = names.filter((name) => name.split('-')[0] === word)
        assert.ok(family.length < 3, `${family.join(', ')} of ${folder} are a folder of their own`)
      }
    })
  }

  it('has no source file at the root but cli.ts', () => assert.deepEqual(folders.get('.'), ['cli']))

  for (const [place, names] of [
    [source, sources],
    [library, librarySources],
  ] as const)
    it(`exports each name once below ${relative(root, place)}`, () => {
      const exported = names.flatMap((file) =>
        Array.from(
          readFileSync(join(place, file), 'utf8').matchAll(
            /^export (?:abstract )?(?:async )?(?:function\*?|const|let|class|type|interface) (\w+)/gm,
          ),
          ([, name = '']) => ({ name, file }),
        ),
      )
      assert.ok(exported.length > 100)
      const twice = [...Map.groupBy(exported, ({ name }) => name)].filter(([, places]) => places.length > 1)
      assert.deepEqual(
        twice.map(([name, places]) => `${name}: ${places.map(({ file }) => file).join(', ')}`),
        [],
        'these names are exported twice: give each thing a name of its own',
      )
    })
})

/** Reads the rows of the table: `chain/{rpc,assets}` are two folders, and «all rows above but» leaves folders out. */
function readTable(): Record<string, readonly string[]> {
  const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
  const rows = [...text.matchAll(/^\| `([\w/]+)` +\|[^|]*\|(.*)\|$/gm)]
  const folders = rows.map(([, name = '']) => name)
  return Object.fromEntries(
    rows.map(([, name = '', words = ''], at) => {
      const [, exceptions] = /all rows above but(.*)/.exec(words) ?? []
      const named = [...(exceptions ?? words).matchAll(/([a-z][\w/]*)(?:\{([\w,]+)\})?/g)].flatMap(
        ([, base = '', parts]) => parts?.split(',').map((part) => base + part) ?? [base],
      )
      return [name, exceptions === undefined ? named : folders.slice(0, at).filter((folder) => !named.includes(folder))]
    }),
  )
}

/** Returns the longest name of the table that holds a file. */
function ruleOf(file: string): string {
  const [rule] = Object.keys(mayImport)
    .filter((name) => file === name || file.startsWith(`${name}/`))
    .toSorted((left, right) => right.length - left.length)
  assert.ok(rule, `${file} is in no folder of the table`)
  return rule
}

/** Returns the relative specifiers of static, dynamic and type imports. */
function importsOf(file: string, wanted = /^\./): string[] {
  return [...readFileSync(file, 'utf8').matchAll(/\b(?:from|import)[\s(]*'([^'\n]+)'/g)]
    .map(([, target = '']) => target)
    .filter((target) => wanted.test(target))
}

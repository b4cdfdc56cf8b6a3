/** The architecture is a table: which folder may import which (ARCHITECTURE.md). */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../src/', import.meta.url))
const library = fileURLToPath(new URL('../../verdict/src/', import.meta.url))

/** Besides itself, `@touchstone/verdict` and the root files. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  http: [],
  chain: [],
  tap: [],
  store: [],
  passport: [],
  pages: [],
  asset: ['chain', 'store'],
  agents: ['http', 'asset'],
  verification: ['http', 'asset', 'tap', 'passport', 'pages', 'agents'],
  commands: ['service.ts', 'parts.ts', 'chain', 'tap', 'store', 'passport'],
  graphql: ['http', 'asset', 'chain', 'store'],
  gateway: ['http', 'asset'],
  'cli.ts': ['commands'],
}
const rootFiles = ['version.ts', 'config.ts', 'settings.ts', 'settings', 'errors.ts', 'log.ts', 'bounded-text.ts']
const onlyTypesOfConfig = [
  'http',
  'chain',
  'tap',
  'store',
  'passport',
  'pages',
  'asset',
  'verification',
  'graphql',
  'gateway',
]

describe('the import table', () => {
  for (const file of filesBelow(source)) {
    const name = relative(source, file)
    if (/^(?:service|parts)[a-z-]*\.ts$/.test(name)) continue // know every part
    const room = (name.split('/')[0] ?? name).replace('.test.ts', '.ts')

    it(`${name} imports only what its room may`, () => {
      assert.ok(room in mayImport || rootFiles.includes(room), `${room} is not in the table`)
      for (const target of importsOf(file)) {
        if (!target.startsWith('.')) continue
        const to = relative(source, resolve(dirname(file), target))
        if (to.startsWith('../../contracts/artifacts/')) continue
        assert.ok(!to.startsWith('..'), `${name} reaches out of service/src: ${target}`)
        const toRoom = to.split('/')[0] ?? to
        const allowed = [room, ...rootFiles, ...(mayImport[room] ?? [])]
        assert.ok(allowed.includes(toRoom), `${name} imports ${to}`)
        if (toRoom === 'config.ts' || toRoom.startsWith('settings'))
          assert.ok(!onlyTypesOfConfig.includes(room), `${name} takes its options, not the configuration`)
      }
    })
  }

  it('nothing but the commands, which hand it to config.ts, names the environment', () => {
    for (const file of filesBelow(source)) {
      const name = relative(source, file)
      if (name.startsWith('commands/') || file.endsWith('.test.ts')) continue
      assert.ok(!readFileSync(file, 'utf8').includes('process.env'), `${name} reads process.env`)
    }
  })

  it('the client library imports nothing of ours and nothing of Node', () => {
    for (const file of filesBelow(library).filter((name) => !name.endsWith('.test.ts'))) {
      for (const target of importsOf(file)) {
        assert.ok(
          target.startsWith('./') || target.startsWith('@noble/'),
          `${relative(library, file)} imports ${target}`,
        )
      }
    }
  })
})

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(folder, name))
}

function importsOf(file: string): string[] {
  const isTest = file.endsWith('.test.ts')
  const targets = [
    ...readFileSync(file, 'utf8').matchAll(/^(?:import|export|\}|const|\s).*?\b(?:from|import)[\s(]*'([^']+)'/gm),
  ]
  return targets.map(([, target = '']) => target).filter((target) => !(isTest && target.includes('/test/')))
}

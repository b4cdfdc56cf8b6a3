/** Stock clients and code generators of GraphQL, unmodified, against the schema and a running host. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Database } from '../../../src/db/database.ts'
import { openEmptyPglite } from '../../support/database/pglite.ts'
import { testFolder } from '../../support/folder.ts'
import { startGraphql } from '../../support/graphql/host.ts'
import { fillExample } from '../../support/index/example.ts'
import { installFixture } from '../../support/stock-packages.ts'

const run = promisify(execFile)
const schemaFile = fileURLToPath(new URL('../../../src/graphql/schema.graphql', import.meta.url))

const installed = await installFixture('graphql-clients')

describe('stock clients of GraphQL', { skip: installed === null && 'npm cannot install them here' }, () => {
  let database: Database
  let graphql: Awaited<ReturnType<typeof startGraphql>>
  const folder = testFolder()
  before(async () => {
    const own = (path: string) => !path.includes('node_modules')
    await cp(installed ?? '', folder, { recursive: true, filter: (path) => own(path.slice(installed?.length)) })
    await symlink(join(installed ?? '', 'node_modules'), join(folder, 'node_modules'))
    await cp(schemaFile, join(folder, 'schema.graphql'))
    await mkdir(join(folder, 'relay-artifacts'))
    database = await openEmptyPglite()
    await fillExample(database)
    graphql = await startGraphql(database)
  })
  after(async () => {
    await graphql.end()
    await database.close()
  })

  /** Runs a program of the fixture; a failure has its output. */
  async function program(...args: readonly string[]): Promise<string> {
    const options = { cwd: folder, timeout: 300_000, env: { ...process.env, GRAPHQL_KEY: graphql.key } }
    try {
      return (await run(process.execPath, [...args], options)).stdout
    } catch (error) {
      const { stdout = '', stderr = '', message } = error as Error & { stdout?: string; stderr?: string }
      throw new Error(`${message}\n${stdout}\n${stderr}`)
    }
  }

  it('graphql-schema-linter finds nothing', async () => {
    assert.match(await program('node_modules/.bin/graphql-schema-linter', 'schema.graphql'), /0 errors detected/)
  })

  it('relay-compiler compiles @refetchable and @connection, and the host answers every query that it made', async () => {
    await program('node_modules/.bin/relay-compiler')
    const variables: Record<string, object> = {
      backOfficePageQuery: { id: '1' },
      backOfficeProductRefetchQuery: { id: '1' },
      backOfficeProductsPageQuery: { last: 2 },
      backOfficeHistoryPageQuery: { id: '1', count: 2, cursor: null },
    }
    const answered: string[] = []
    for (const file of await readdir(join(folder, 'relay-artifacts'))) {
      const artifact = await readFile(join(folder, 'relay-artifacts', file), 'utf8')
      const [, text] = /"text": ("(?:[^"\\]|\\.)*")/.exec(artifact) ?? []
      const name = file.slice(0, -'.graphql.ts'.length)
      if (text === undefined) continue
      const { data, errors } = await graphql.ask(JSON.parse(text) as string, { ...variables[name] })
      assert.deepEqual(errors, [], name)
      assert.ok(data)
      answered.push(name)
    }
    assert.deepEqual(answered.toSorted(), Object.keys(variables).toSorted())
  })

  it('the code of GraphQL Code Generator and gql.tada type-checks, and graphql-request and urql run with it', async () => {
    await program('codegen.js')
    await program('node_modules/.bin/gql.tada', 'generate-output')
    await program('node_modules/.bin/tsc', '-p', '.')
    const said = JSON.parse(await program('--no-warnings', 'src/ask.ts', `${graphql.url}/graphql`)) as object
    assert.deepEqual(said, {
      names: ['50%_off\\', 'Watch'],
      statuses: ['PENDING', 'FAILED', 'CONFIRMED'],
      total: 3,
      last: ['CONFIRMED'],
    })
  })
})

/**
 * `npm run test:citus` runs the tests of store, index, taps, payments and GraphQL on a Citus cluster. It starts and ends a cluster of one
 * coordinator and two workers. `TEST_CITUS` is the folder of the program `cluster`; the tests are skipped where there is none.
 */
import { globSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeTemplate } from '../service/test/support/database/citus.ts'
import { citusLacks, startCitusCluster } from '../service/test/support/database/citus-cluster.ts'
import { runStages } from './stages.ts'
import { groupFiles } from './test-files.ts'
import { readOptions } from './options.ts'

const { positionals: given } = readOptions({ allowPositionals: true })

const lacks = citusLacks()
if (lacks !== null) {
  console.log(`Tests on Citus are skipped: ${lacks}.`)
  process.exit(0)
}

/** Tests of other folders use no distributed table, or begin with an empty database. */
const folders = [
  'service/src/{access,tap,index,graphql,payments,passport}/**/*',
  'service/test/e2e/{index,tap,graphql,payments}/**/!(away)',
  'service/test/e2e/database/!(audit|away|backup|backup-lines|disk-full|failover|pgbouncer|privacy|read-replica)',
]
const files = (given.length > 0 ? given : globSync(folders.map((folder) => `${folder}.test.ts`)))
  .filter((file) => given.length > 0 || /\/database\/(?:databases|citus)\.ts/.test(readFileSync(file, 'utf8')))
  .toSorted()

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
const { url, workerPorts, folder, env } = await startCitusCluster()
await makeTemplate(url, workerPorts)
const statements = join(folder, 'statements')
mkdirSync(statements)
Object.assign(process.env, { TMPDIR: folder, TEST_CITUS_STATEMENTS: statements, ...env })
const testCommand = (...all: readonly string[]) =>
  [
    'node',
    '--test',
    '--import=./scripts/test-process.ts',
    '--import=./service/test/support/database/record-statements.ts',
    '--test-timeout=900000',
    '--test-concurrency=4',
    '--test-reporter=spec',
    ...all,
  ] as const
await runStages([
  {
    name: 'tests on Citus',
    command: testCommand(...(given.length > 0 ? given : groupFiles(files, mkdtempSync(join(folder, 'groups-'))))),
  },
  ...(given.length > 0
    ? []
    : [{ name: 'plans of their statements', command: testCommand('service/test/contract/cluster-plans.test.ts') }]),
])

/**
 * `npm run test:citus`: the tests of the store, the index, taps, payments and GraphQL on a Citus cluster of one coordinator and two
 * workers, which it starts and ends. `TEST_CITUS` is the folder of the program `cluster`; the tests are skipped where there is none.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { makeTemplate } from '../service/test/support/database/citus.ts'
import { freePorts } from '../service/test/support/free-port.ts'
import { runStages } from './stages.ts'

const program = join(resolve(process.env['TEST_CITUS'] ?? '../shared/citus'), 'cluster')
const missing = [program, '/usr/lib/postgresql/15/bin/initdb'].find((path) => !existsSync(path))
if (missing !== undefined) {
  console.log(`Tests on Citus are skipped: there is no ${missing}. TEST_CITUS names the folder of the program.`)
  process.exit(0)
}

/** Tests of other folders use no distributed table, or begin with an empty database. */
const folders = [
  'service/src/{tap,index,graphql,payments,passport}/**/*',
  'service/test/e2e/{index,tap,graphql,payments}/**/!(away)',
  'service/test/e2e/database/!(audit|away|backup|disk-full|failover|pgbouncer|privacy|read-replica)',
]
const given = process.argv.slice(2)
const files = (given.length > 0 ? given : globSync(folders.map((folder) => `${folder}.test.ts`)))
  .filter((file) => given.length > 0 || readFileSync(file, 'utf8').includes('/database/databases.ts'))
  .toSorted()

const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'touchstone-citus-'))
chmodSync(folder, 0o755) // PostgreSQL runs as another user
const workers = 2
const port = await freePorts(1 + workers)
const cluster = (command: string) =>
  execFileSync(program, [command, join(folder, 'nodes'), String(port), String(workers)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
process.once('exit', () => {
  cluster('stop')
  rmSync(folder, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

cluster('start')
const url = `postgres://postgres@127.0.0.1:${port}/postgres`
const workerPorts = Array.from({ length: workers }, (_, index) => port + 1 + index)
await makeTemplate(url, workerPorts)
const statements = join(folder, 'statements')
mkdirSync(statements)
Object.assign(process.env, {
  TMPDIR: folder,
  TEST_CITUS_URL: url,
  TEST_CITUS_WORKERS: workerPorts.join(),
  TEST_CITUS_STATEMENTS: statements,
})
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
  { name: 'tests on Citus', command: testCommand(...files) },
  ...(given.length > 0
    ? []
    : [{ name: 'plans of their statements', command: testCommand('service/test/contract/cluster-plans.test.ts') }]),
])

/** Settings and files that a start refuses, and that `touchstone doctor` therefore calls wrong. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { readServiceConfig } from '../../../src/app/config/config.ts'
import { startService } from '../../../src/app/service.ts'
import { diagnoseSettings } from '../../../src/cli/doctor/doctor.ts'
import { createLog } from '../../../src/lib/log.ts'
import { noPostgres, openOwnDatabase } from '../../support/database/databases.ts'
import { copyEmptyPglite } from '../../support/database/pglite.ts'
import { testFolder } from '../../support/folder.ts'
import { freePort, freePorts } from '../../support/free-port.ts'
import { startWorld } from '../../support/world.ts'
import { useOpened } from '../../support/opened.ts'

type Env = Readonly<Record<string, string>>

const gateway = { ONLY: 'gateway', PAYMENT_PAY_TO: `0x${'12'.repeat(20)}`, FACILITATOR_KEY: '34'.repeat(32) }

/** `files` are those of the data folder. */
const refused: readonly Readonly<{ what: RegExp; env?: Env; files?: Env }>[] = [
  { what: /^A quorum is of 2 providers or more; 2 of 1 RPC URLs make none/, env: { CHAIN_TRUST: 'quorum' } },
  {
    what: /^PAGE_OWNERSHIP=claim,transfer needs TAG_KEK and RELAYER_KEY, for claims also ATTESTER_KEY/,
    env: { PAGE_OWNERSHIP: 'claim', ATTESTER_KEY: '' },
  },
  { what: /^PAGE_OWNERSHIP=claim,transfer needs/, env: { PAGE_OWNERSHIP: 'transfer', OPERATOR_KEY: '' } },
  {
    what: /^Configure one attestation key: ATTESTATION_KEY, ATTESTATION_KEYSTORE or/,
    env: {
      ATTESTATION_KEY: '35'.repeat(32),
      ATTESTATION_KEYSTORE: '/nope.json',
      ATTESTATION_KEYSTORE_PASSWORD_FILE: '/nope',
    },
  },
  {
    what: /^\/nope\.json cannot be read \(ENOENT\)/,
    env: { ONLY: 'graphql', ATTESTATION_KEYSTORE: '/nope.json', ATTESTATION_KEYSTORE_PASSWORD_FILE: '/nope' },
  },
  {
    what: /^\S+attest-0123456789abcdef\.json is damaged/,
    env: { ONLY: 'graphql' },
    files: { 'keys/attest-0123456789abcdef.json': '{}' },
  },
  { what: /^The issuer key text is neither a JWK Set nor a JWK/, files: { 'keys/issuer.jwks.json': '{}' } },
  { what: /^The key file cannot be opened/, env: { ONLY: 'graphql' }, files: { 'keys/tag-keys.json': '{}' } },
]

describe('touchstone doctor calls wrong what a start refuses', () => {
  const world = useOpened(startWorld)

  const wrongOnes = async (env: Env) =>
    (await diagnoseSettings(env)).filter(({ state }) => state === 'wrong').map(({ what }) => what)

  for (const { what, env = {}, files = {} } of refused)
    it(`${[...Object.keys(env), ...Object.keys(files)].join(' ')}: ${what.source}`, async () => {
      const DATA_DIR = testFolder()
      await copyEmptyPglite(join(DATA_DIR, 'store'))
      mkdirSync(join(DATA_DIR, 'keys'))
      for (const [name, text] of Object.entries(files)) writeFileSync(join(DATA_DIR, name), text)
      const settings = { ...world.settings, DATA_DIR, ...env }
      const starting = startService(
        readServiceConfig(settings),
        createLog(() => {}, 'silent'),
      )
      await assert.rejects(
        starting.then((service) => service.close(0)),
        ({ message }: Error) => what.test(message),
      )
      const found = await wrongOnes(settings)
      assert.ok(found.length === 1 && what.test(found[0] ?? ''), found.join(' | '))
    })

  it('a port that two listeners are to have, or a later worker', async () => {
    const port = await freePort()
    const first = await freePorts(2)
    await using later = createServer()
    await once(later.listen(first + 1, '127.0.0.1'), 'listening')
    const portOf = (setting: string) => new RegExp(`^${setting}: `)
    for (const [env, what] of [
      [{ VERIFICATION_PORT: String(port), GRAPHQL_PORT: String(port) }, portOf('GRAPHQL_PORT')],
      [{ VERIFICATION_PORT: String(port), METRICS_PORT: String(port) }, portOf('METRICS_PORT')],
      [
        { DATABASE_URL: 'postgres://127.0.0.1:1/none', WORKERS: '2', METRICS_PORT: String(first) },
        portOf('METRICS_PORT'),
      ],
    ] as const) {
      const found = (await wrongOnes({ ...world.settings, ...env })).filter((one) => one.includes('_PORT'))
      assert.ok(found.length === 1 && what.test(found[0] ?? ''), found.join(' | '))
    }
    const last = { WORKERS: '2', DATABASE_URL: 'postgres://127.0.0.1:1/none', METRICS_PORT: '65535' }
    assert.deepEqual(await wrongOnes(last), [
      'METRICS_PORT is 65535, and leaves no port for each of 2 WORKERS: the last one is at most 65535.',
    ])
  })

  it('a block that the index would begin at, and that is far ahead', async () => {
    const found = await wrongOnes({ ...world.settings, CHAIN_START_BLOCK: '412345670' })
    assert.match(
      found.join(' | '),
      /^CHAIN_START_BLOCK is above the newest block of localhost:\d+, so that nothing is indexed\.$/,
    )
  })

  it('nothing of a Redis that counts no limits', async () => {
    const found = await diagnoseSettings({
      ...world.settings,
      REDIS_URL: 'redis://127.0.0.1:1',
      RATE_LIMIT_STORE: 'process',
    })
    assert.deepEqual(
      found.filter(({ what }) => what.includes('REDIS')).map(({ state, what }) => `${state}: ${what}`),
      ['warning: REDIS_URL has no effect with RATE_LIMIT_STORE=process.'],
    )
  })

  it('a folder without the attestation key of the database', { skip: noPostgres }, async () => {
    await using other = await openOwnDatabase('migrated')
    await other.query(
      `insert into attestation_key (address, valid_from, status) values ('\\x${'12'.repeat(20)}', 1, 'active')`,
    )
    const settings = { ...world.settings, DATABASE_URL: other.url, DATA_DIR: testFolder() }
    const missing = /^The attestation key attest-\w+ of this database is not in /
    assert.match((await wrongOnes({ ...settings, ...gateway })).join(), missing)
    assert.doesNotMatch((await wrongOnes({ ...settings, ONLY: 'graphql' })).join(), missing)
    const log = createLog(() => {}, 'silent')
    await assert.rejects(
      startService(readServiceConfig({ ...settings, ...gateway }), log).then((service) => service.close(0)),
      ({ message }: Error) => missing.test(message),
    )
  })
})

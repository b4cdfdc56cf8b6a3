import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { clusterSkip, postgresUser, startPostgres } from '../../support/database/postgres-cluster.ts'
import { pgbouncerSkip, startPgBouncer } from '../../support/database/pgbouncer.ts'
import { testFolder } from '../../support/folder.ts'
import { read } from '../../support/processes/deploy.ts'
import { until } from '../../support/wait.ts'
import { readConfig } from '../../../src/app/config/config.ts'
import { openBareDatabase } from '../../../src/app/store.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { locks } from '../../../src/db/locks.ts'

describe('PostgreSQL over TLS', { skip: clusterSkip }, () => {
  const opened = new AsyncDisposableStack()
  const folder = testFolder()
  const at = (name: string) => join(folder, name)
  let urlWith: (parameters: Readonly<Record<string, string>>) => string
  before(async () => {
    chmodSync(folder, 0o711) // the account of PostgreSQL opens the files
    makeCertificate('server', 'subjectAltName=IP:127.0.0.1')
    makeCertificate('other', 'subjectAltName=IP:127.0.0.1')
    const user = postgresUser()
    if ('uid' in user)
      for (const name of ['server.key', 'server.crt', 'other.crt']) chownSync(at(name), user.uid, user.gid)
    const files = { ssl_cert_file: at('server.crt'), ssl_key_file: at('server.key') }
    const server = opened.adopt(await startPostgres({ ssl: 'on', ...files }), (it) => it.end())
    urlWith = (parameters) => `${server.url}?${new URLSearchParams(parameters).toString()}`
  })
  after(() => opened.disposeAsync())

  it('carries statements, notices and locks, each in an encrypted session', async () => {
    const url = urlWith({ sslmode: 'verify-full', sslrootcert: at('server.crt') })
    const database = opened.use(await openDatabase({ url, directUrl: url }))
    let notices = 0
    opened.use(database.listen('news', () => (notices += 1)))
    const held = await database.hold(locks.imports)
    await until(() => notices === 1)
    await database.transaction((sql) => sql.query(`select pg_notify('news', '')`))
    await until(() => notices === 2)
    const sessions = await database.query<{ ssl: boolean }>(
      `select ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'touchstone'`,
    )
    assert.ok(sessions.length >= 3, 'the pool, LISTEN and the lock')
    assert.deepEqual(new Set(sessions.map(({ ssl }) => ssl)), new Set([true]))
    await held?.release()
  })

  it('does not open where the certificate cannot be checked, and says what to set', async () => {
    const openWith = (parameters: Readonly<Record<string, string>>) => () =>
      openBareDatabase(
        readConfig({ DATA_DIR: folder, DATABASE_URL: urlWith({ sslmode: 'verify-full', ...parameters }) }),
      )
    const remedy = 'Name the certificate of its CA: ?sslmode=verify-full&sslrootcert=/path/to/ca.crt.'
    await assert.rejects(openWith({}), {
      message: `The certificate of PostgreSQL under DATABASE_URL is not trusted: DEPTH_ZERO_SELF_SIGNED_CERT. ${remedy}`,
    })
    await assert.rejects(openWith({ sslrootcert: at('other.crt') }), { message: /is not trusted: [A-Z_]+\. Name the/ })
    await assert.rejects(openWith({ sslrootcert: at('absent.crt') }), {
      message: `A file that DATABASE_URL names cannot be read: ENOENT, ${at('absent.crt')}.`,
    })
  })

  it('is used and checked by the PgBouncer of deploy/kubernetes', { skip: pgbouncerSkip }, async () => {
    const lines = read('deploy/kubernetes/overlays/production/pgbouncer.ini').match(/^server_tls_.*$/gm) ?? []
    const openWith = async (authority: string) => {
      const settings = lines.map((line) => line.replace('/etc/ssl/certs/ca-certificates.crt', at(authority)))
      const pooler = opened.adopt(await startPgBouncer(urlWith({}), { settings }), (it) => it.close())
      const directUrl = urlWith({ sslmode: 'verify-full', sslrootcert: at('server.crt') })
      return opened.use(await openDatabase({ url: pooler.url, directUrl }))
    }
    const pooled = await openWith('server.crt')
    const own = 'select ssl from pg_stat_ssl where pid = pg_backend_pid()'
    assert.deepEqual(await pooled.query(own), [{ ssl: true }])
    await assert.rejects(openWith('other.crt'))
  })

  function makeCertificate(name: string, extension: string): void {
    const files = ['-keyout', at(`${name}.key`), '-out', at(`${name}.crt`), '-days', '2']
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    const names = ['-subj', `/CN=${name}`, '-addext', extension]
    execFileSync('openssl', ['req', '-x509', ...curve, ...files, ...names], { stdio: 'ignore' })
  }
})

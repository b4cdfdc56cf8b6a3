/** deploy/pgbouncer: Debian's PgBouncer takes the file, and Touchstone works behind it. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openOwnDatabase, noPostgres } from '../../support/database/databases.ts'
import { pgbouncerSkip, startConfigured } from '../../support/database/pgbouncer.ts'
import { read } from '../../support/processes/deploy.ts'
import { openDatabase } from '../../../src/db/database.ts'

describe('deploy/kubernetes/overlays/production/pgbouncer.ini', () => {
  it('is that of deploy/pgbouncer, but for the host, TLS to it, and the number of pods', () => {
    const settings = (path: string) => {
      const [databases = '', rest = ''] = read(path).split('[pgbouncer]')
      const ofBoth = rest.replaceAll(/^(?:; .*\n)*server_tls_.*\n/gm, '')
      return [databases.replace(/host=\S+/, 'host').replace(/^.*\n/, ''), ofBoth]
    }
    assert.deepEqual(
      settings('deploy/kubernetes/overlays/production/pgbouncer.ini'),
      settings('deploy/pgbouncer/pgbouncer.ini'),
    )
  })
})

describe('deploy/pgbouncer/pgbouncer.ini', { skip: pgbouncerSkip || noPostgres }, () => {
  it('lets in who knows the password, and limits the time of a statement', async () => {
    await using opened = new AsyncDisposableStack()
    const database = opened.use(await openOwnDatabase())
    const { hostname, port, pathname } = new URL(database.url)
    const configuration = read('deploy/pgbouncer/pgbouncer.ini')
      .replace('host=postgres port=5432', `host=${hostname} port=${port || '5432'}`)
      .replace('touchstone = ', `${pathname.slice(1)} = `)
      .replace('listen_addr = *', 'listen_addr = 127.0.0.1')
    const pooler = opened.adopt(await startConfigured(database.url, configuration, 'secret'), (it) => it.close())
    const pooled = opened.use(await openDatabase({ url: pooler.url, directUrl: database.url }))
    assert.deepEqual(await pooled.query(`select current_setting('statement_timeout') as limit`), [{ limit: '5s' }])
    await assert.rejects(openDatabase({ url: pooler.url.replace('secret', 'other') }))
  })
})

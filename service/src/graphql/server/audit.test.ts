/** GraphQL over HTTP, by the full audit of graphql-http, its recommendations included. */
import { openEmptyPglite } from '../../../test/support/database/pglite.ts'
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { serverAudits } from 'graphql-http'
import { type Database } from '../../db/database.ts'
import { startGraphql } from '../../../test/support/graphql/host.ts'

describe('GraphQL over HTTP', () => {
  let database: Database
  let graphql: Awaited<ReturnType<typeof startGraphql>>
  before(async () => {
    database = await openEmptyPglite()
    graphql = await startGraphql(database)
  })
  after(async () => {
    await graphql.end()
    await database.close()
  })

  /** The audit sends no keys. */
  const fetchFn: typeof fetch = (url, init) => {
    const headers = new Headers(init?.headers)
    headers.set('Authorization', `Bearer ${graphql.key}`)
    return fetch(url, { ...init, headers })
  }
  const audits = serverAudits({ url: () => `${graphql.url}/graphql`, fetchFn })

  it('is audited in full', () => assert.ok(audits.length >= 61))

  for (const { name, fn } of audits)
    it(name, async () => {
      const result = await fn()
      assert.equal(result.status, 'ok', 'reason' in result ? result.reason : '')
    })
})

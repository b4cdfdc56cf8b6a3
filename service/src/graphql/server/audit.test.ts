/** GraphQL over HTTP, by the full audit of graphql-http, its recommendations included. */
import { openEmptyPglite } from '../../../test/support/database/pglite.ts'
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { serverAudits } from 'graphql-http'
import { postGraphql } from '../../../test/support/graphql/client.ts'
import { startGraphql } from '../../../test/support/graphql/host.ts'
import { useOpened } from '../../../test/support/opened.ts'

describe('GraphQL over HTTP', () => {
  const database = useOpened(openEmptyPglite)
  const graphql = useOpened(() => startGraphql(database))

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

  it('has null as the data of a query that outlasts its time: only then its status may be 200', async () => {
    await using brief = await startGraphql(database, { times: { timeoutMs: 50 } })
    await brief.ask('{ __typename }') // the key is known from here on
    const body = { query: '{ product(id: "1") { id } }' }
    const headers = { Accept: 'application/graphql-response+json' }
    const answer = await database.transaction(() => postGraphql(brief.url, brief.key, body, headers))
    const { data, errors } = (await answer.json()) as { data?: null; errors: { extensions: { code: string } }[] }
    assert.deepEqual([answer.status, data, errors[0]?.extensions.code], [200, null, 'TOO_COMPLEX'])
  })
})

/** GraphQL over HTTP, by the full audit of graphql-http, its recommendations included. */
import { openEmptyPglite } from '../../../test/support/database/pglite.ts'
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { serverAudits } from 'graphql-http'
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
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseServers } from './server-list.ts'

describe('the servers of a URL', () => {
  it('are one, whatever its parameters', () => {
    for (const url of [
      'postgres://touchstone@127.0.0.1/x',
      'postgresql://u:p%40ss@[::1]:5433/x?sslmode=verify-full',
      'postgres://u@h/x?target_session_attrs=any',
      'postgres:///x',
    ])
      assert.deepEqual(parseServers(url), [url])
  })

  it('are those of a list, each with account, name and parameters of the URL', () => {
    const list = 'postgres://u:p%2Cw@a.example:5432,b.example,[::1]:5433/x?target_session_attrs=read-write'
    assert.deepEqual(parseServers(list), [
      'postgres://u:p%2Cw@a.example:5432/x?target_session_attrs=read-write',
      'postgres://u:p%2Cw@b.example/x?target_session_attrs=read-write',
      'postgres://u:p%2Cw@[::1]:5433/x?target_session_attrs=read-write',
    ])
    assert.equal(parseServers('postgres://u@a,b/x?target_session_attrs=primary')?.length, 2)
  })

  it('are null for another text, and for a list that does not ask for the one that takes writes', () => {
    for (const text of [
      '',
      'mysql://a/x',
      'postgres://u@a,b/x',
      'postgres://u@a,b/x?target_session_attrs=any',
      'postgres://u@a,b/x?target_session_attrs=standby',
      'postgres://u@a,/x?target_session_attrs=read-write',
      'postgres://u@a:1,b:99999/x?target_session_attrs=read-write',
      'postgres://u@a:port/x',
    ])
      assert.equal(parseServers(text), null, text)
  })
})

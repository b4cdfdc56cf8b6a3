/** Trusted documents over HTTP and socket, in the forms of Apollo, Relay and urql. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { openEmptyPglite } from '../../../test/support/database/pglite.ts'
import { testFolder } from '../../../test/support/folder.ts'
import { subscribe, startSockets } from '../../../test/support/graphql/socket.ts'
import { postGraphql } from '../../../test/support/graphql/client.ts'
import { startGraphql } from '../../../test/support/graphql/host.ts'
import { insertAsset } from '../../../test/support/index/rows.ts'
import { useOpened } from '../../../test/support/opened.ts'
import { graphqlSchema } from '../schema.ts'
import { readTrustedDocuments } from './trusted-documents.ts'

const named = 'query Named($id: ID!) { product(id: $id) { id name } }'
const verified = 'subscription { productVerified { verifiedAt } }'
const other = '{ product(id: "1") { id } }'
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')
const documents = new Map([named, verified].map((text) => [hashOf(text), text]))

describe('trusted documents', () => {
  const database = useOpened(openEmptyPglite)
  before(() => insertAsset(database, { tokenId: 1, name: 'Watch' }))
  const world = useOpened(() => startSockets(database, { documents }))

  type Answer = { data?: unknown; errors?: { message: string; extensions: { code: string } }[] }
  const post = async (body: object) => (await (await postGraphql(world.httpUrl, world.key, body)).json()) as Answer
  async function get(parameters: Record<string, string>): Promise<Answer> {
    const headers = { Authorization: `Bearer ${world.key}` }
    const url = `${world.httpUrl}/graphql?${new URLSearchParams(parameters).toString()}`
    return (await (await fetch(url, { headers })).json()) as Answer
  }
  const dataOf = async (answer: Promise<Answer>) => (await answer).data
  const watch = { product: { id: '1', name: 'Watch' } }
  const variables = { id: '1' }
  const apollo = { persistedQuery: { version: 1, sha256Hash: hashOf(named) } }

  it('are named by their hash, over POST and GET', async () => {
    assert.deepEqual(await dataOf(post({ extensions: apollo, variables })), watch)
    assert.deepEqual(await dataOf(post({ query: null, extensions: apollo, variables })), watch)
    assert.deepEqual(await dataOf(post({ documentId: hashOf(named), variables })), watch)
    assert.deepEqual(await dataOf(post({ documentId: `sha256:${hashOf(named)}`, variables })), watch)
    const given = { variables: JSON.stringify(variables) }
    assert.deepEqual(await dataOf(get({ documentId: hashOf(named), ...given })), watch)
    assert.deepEqual(await dataOf(get({ extensions: JSON.stringify(apollo), ...given })), watch)
  })

  it('may also come as their text, with or without the hash', async () => {
    assert.deepEqual(await dataOf(post({ query: named, variables })), watch)
    assert.deepEqual(await dataOf(post({ query: named, extensions: apollo, variables })), watch)
    const mixed = await post({ query: verified, extensions: apollo, variables })
    assert.equal(mixed.errors?.[0]?.extensions.code, 'BAD_USER_INPUT')
  })

  it('are the only ones that run', async () => {
    for (const body of [
      { query: other },
      { documentId: hashOf(other) },
      { query: '{ __schema { types { name } } }' },
    ]) {
      const { data, errors } = await post(body)
      assert.equal(data, undefined)
      assert.equal(errors?.[0]?.extensions.code, 'FORBIDDEN')
      assert.match(errors?.[0]?.message ?? '', /trusted documents only/)
    }
    assert.equal((await get({ query: other })).errors?.[0]?.extensions.code, 'FORBIDDEN')
    assert.match((await post({ variables })).errors?.[0]?.message ?? '', /Missing query/)
  })

  it('are the only ones over a socket, and in an event stream', async () => {
    for (const connect of [() => world.connect(), () => world.connectStream()]) {
      const refused = subscribe(connect(), other)
      assert.match(JSON.stringify(await refused.ended), /FORBIDDEN/)
      const found = await connect().iterate({ query: '', extensions: apollo, variables }).next()
      assert.deepEqual(found.value?.data, watch)
    }
  })

  it('need a service that keeps them', async () => {
    await using open = await startGraphql(database)
    for (const body of [{ documentId: hashOf(named) }, { extensions: apollo }]) {
      const answer = await postGraphql(open.url, open.key, { ...body, variables })
      const [error] = ((await answer.json()) as Answer).errors ?? []
      assert.deepEqual(
        [error?.message, error?.extensions.code],
        ['PersistedQueryNotSupported', 'PERSISTED_QUERY_NOT_SUPPORTED'],
      )
    }
    assert.equal((await open.ask(other)).errors.length, 0)
  })
})

describe('the file of trusted documents', () => {
  const folder = testFolder()

  async function read(content: unknown) {
    const path = join(folder, 'documents.json')
    await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
    return readTrustedDocuments(path, graphqlSchema())
  }

  it('holds documents by their SHA-256', async () => {
    assert.deepEqual(await read(Object.fromEntries(documents)), documents)
  })

  it('is refused with a sentence that says why', async () => {
    await assert.rejects(read('no JSON'), /is not a JSON object/)
    await assert.rejects(read({ [hashOf(other)]: named }), /is not the SHA-256 of its document/)
    await assert.rejects(
      read({ [hashOf('{ gone }')]: '{ gone }' }),
      /does not fit the schema: Cannot query field "gone"/,
    )
    await assert.rejects(readTrustedDocuments(join(folder, 'none.json'), graphqlSchema()), /none\.json cannot be read/)
    await assert.rejects(readTrustedDocuments('/dev/zero', graphqlSchema()), /of at most 16 MB/)
  })
})

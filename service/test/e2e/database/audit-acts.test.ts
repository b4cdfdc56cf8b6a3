/**
 * Acts that are in the audit trail although they changed nothing, or nothing in the database. They are refusals, and commands on keys and
 * tags.
 */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { readConfig } from '../../../src/app/config/config.ts'
import { commandRunner } from '../../../src/cli/store-commands.ts'
import { type AuditBody, auditHead, readAudit, verifyAudit } from '../../../src/db/audit.ts'
import type { Scope } from '../../../src/access/rights.ts'
import { newApiKey } from '../../../src/access/api-keys.ts'
import { keepSecret } from '../../support/evidence.ts'
import { testFolder } from '../../support/folder.ts'
import { captureIo, commandsOf } from '../../support/processes/cli.ts'
import { makeReadOnly, noReadOnly } from '../../support/read-only.ts'
import { useOpened } from '../../support/opened.ts'
import { startWorld } from '../../support/world.ts'

describe('the audit trail', () => {
  const world = useOpened(startWorld)

  async function newKey(scopes: readonly Scope[], brands: readonly string[] | null = null) {
    const { text, hash } = newApiKey()
    keepSecret(text)
    return { text, id: await world.components.apiKeys.create({ hash, name: 'k', scopes, brands }) }
  }
  async function mutate(key: string, field: string, input: string): Promise<void> {
    await fetch(`${world.urls.graphql}/graphql`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${key}` },
      body: JSON.stringify({ query: `mutation { ${field}(input: { ${input} }) { success } }` }),
    })
  }
  /** Returns the entries that `work` makes. */
  async function entriesOf(work: () => Promise<unknown>): Promise<AuditBody[]> {
    const { seq } = await auditHead(world.components.database)
    await work()
    return (await readAudit(world.components.database, seq, 1_000)).map(({ body }) => JSON.parse(body) as AuditBody)
  }

  it('has mutations that were refused for the rights of the key, the input, or by the chain', async () => {
    const tokenId = String(await world.mint({ name: 'Watch', brand: 'Acme' }))
    const [reader, writer] = [await newKey(['read']), await newKey(['write'])]
    const foreign = await newKey(['write'], ['Bolt'])
    const refused = async (key: { text: string; id: string }, field: string, input: string) => {
      const [entry, ...more] = await entriesOf(() => mutate(key.text, field, input))
      assert.deepEqual(more, [])
      const { requestId, because, ...rest } = entry ?? ({} as AuditBody)
      assert.deepEqual(rest, { who: `key:${key.id}`, act: field, subject: rest.subject, outcome: 'REFUSED' })
      assert.match(requestId ?? '', /.+/)
      return `${rest.subject}: ${because}`
    }
    const product = `productId: "${tokenId}"`
    assert.match(await refused(reader, 'activateProduct', product), /lacks the scope activate/)
    assert.equal(
      await refused(foreign, 'activateProduct', product),
      `${tokenId}: productId: Product ${tokenId} does not exist.`,
    )
    assert.match(await refused(writer, 'activateProduct', product), /productId: Asset \d+ is MINTED/)
    assert.match(await refused(writer, 'flagProduct', `${product}, reports: []`), /reports: Name at least one report/)
    assert.match(await refused(writer, 'acceptTransfer', 'transferId: "x", signature: "0x00"'), /^: transferId: /)
  })

  it('has each command that changes something once, done, done in part or refused, and none that only reads', async () => {
    const run = commandsOf(world)
    const acts = async (...argv: string[]) =>
      (await entriesOf(() => run(...argv))).map(({ act, subject, outcome }) => `${act} ${subject} ${outcome}`)
    assert.deepEqual(await acts('tag', 'batch', 'create', 'spring'), ['command tag batch create spring DONE'])
    assert.deepEqual(await acts('tag', 'batch', 'create', 'spring'), ['command tag batch create spring REFUSED'])
    const folder = testFolder()
    const tags = join(folder, 'tags.csv')
    await writeFile(tags, 'uid\n04000000000001\nnot a uid\n')
    assert.deepEqual(await acts('tag', 'import', tags, '--batch', 'spring'), ['command tag import  FAILED'])
    await writeFile(tags, 'uid\n04000000000001\n')
    assert.deepEqual(await acts('tag', 'import', tags, '--batch', 'spring'), ['command tag import  DONE'])
    assert.deepEqual(await acts('tag', 'batch', 'revoke', 'spring'), ['command tag batch revoke spring DONE'])
    assert.deepEqual(await acts('tag', 'batch', 'list'), [])
    assert.deepEqual(await acts('asset', 'activate', '999'), ['command asset activate 999 REFUSED'])
    assert.deepEqual(await acts('asset', 'activate', '999', '--dry-run'), [])
    assert.deepEqual(await acts('key', 'revoke', 'aaaaaaaa'), ['command key revoke aaaaaaaa REFUSED'])
    const made = await acts('key', 'create', 'my-app')
    assert.match(made.join(), /^key\.create \w{8} DONE$/)
    assert.deepEqual(await acts('export', 'products'), ['command export products  DONE'])
    const minted = await acts('asset', 'mint')
    assert.match(minted.join(), /^mint {2}SIGNED,mint {2}CONFIRMED$/)
  })

  it(
    'has a revocation that took effect although the key file cannot be written, which a repeat writes',
    { skip: noReadOnly },
    async () => {
      const run = commandsOf(world)
      await run('tag', 'batch', 'create', 'summer')
      const folder = join(world.settings.DATA_DIR, 'keys')
      const change = async (...argv: string[]) => {
        const { seq } = await auditHead(world.components.database)
        const { exit, out, err } = await run('tag', 'batch', ...argv)
        const entries = await readAudit(world.components.database, seq, 10)
        return { exit, out, err, outcomes: entries.map(({ body }) => (JSON.parse(body) as AuditBody).outcome) }
      }
      const inFile = () => world.components.tagKeys.record('summer')?.status
      {
        using _closed = makeReadOnly(folder)
        const { err, ...revoked } = await change('revoke', 'summer')
        const out = 'Batch summer is revoked. From now on its tags are answered as counterfeit.'
        assert.deepEqual(revoked, { exit: 0, out, outcomes: ['DONE'] })
        assert.match(err, /^touchstone: Batch summer is revoked, but not in the key file.*Repeat the command where/)
        assert.match(err, /tag-keys\.json cannot be written: /)
        assert.deepEqual([await world.components.tags.revokedBatches(), inFile()], [['spring', 'summer'], 'active'])
      }
      const repeated = await change('revoke', 'summer')
      assert.deepEqual(repeated, { exit: 0, out: 'Batch summer is revoked already.', err: '', outcomes: [] })
      assert.equal(inFile(), 'revoked')
      {
        using _closed = makeReadOnly(folder)
        const { err, exit, outcomes } = await change('retire', 'summer', '--lift-revocation')
        assert.deepEqual([exit, outcomes], [0, ['DONE']])
        assert.match(err, /is retired, but not in the key file\. Where that says revoked, its tags stay counterfeit\./)
        assert.equal(inFile(), 'revoked')
      }
      assert.equal((await change('retire', 'summer')).err, '')
      assert.equal(inFile(), 'retired')
    },
  )

  it('is checked no further once the command is interrupted', async () => {
    const run = await commandRunner(readConfig(world.settings), world)
    const { io, ran } = captureIo(world.settings.DATA_DIR)
    const interrupted = ran(await run(['audit', 'verify'], { ...io, signal: AbortSignal.abort() }))
    assert.deepEqual(interrupted, { exit: 1, out: '', err: 'touchstone: The check was interrupted.' })
  })

  it('has its head in the log of a start', async () => {
    assert.ok(world.lines.some((line) => /"event":"audit head","head":"\d+:0x[0-9a-f]{64}"/.test(line)))
    assert.equal((await verifyAudit(world.components.database)).ok, true)
  })
})

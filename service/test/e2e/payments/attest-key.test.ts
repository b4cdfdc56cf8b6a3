/** `touchstone attest key …`: a rotation by hand, on real keys and a real database (spec §4.8). */
import { openEmptyPglite } from '../../support/database/pglite.ts'
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Command } from 'commander'
import { isPublishedAddress } from '../../../src/domain/published-accounts.ts'
import { attestCommand } from '../../../src/cli/keys/attestation.ts'
import { runWithin, formatError, type Session } from '../../../src/cli/session/session.ts'
import { openAttestationKeys, type AttestationKeys } from '../../../src/payments/attestation/keys.ts'
import { type Database } from '../../../src/db/database.ts'
import { migrate } from '../../../src/db/migrate.ts'

describe('touchstone attest key', () => {
  let folder: string
  let database: Database
  let keys: AttestationKeys
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'touchstone-attest-key-'))
    database = await openEmptyPglite()
    await migrate(database)
    keys = await openAttestationKeys({ folder, database, isPublicKnowledge: isPublishedAddress })
  })
  after(async () => {
    await database.close()
    await rm(folder, { recursive: true })
  })

  async function attest(...argv: string[]): Promise<string> {
    const lines: string[] = []
    const line = (text: string) => void lines.push(text)
    const io = { out: line, err: line, cwd: folder, signal: new AbortController().signal }
    const program = new Command('touchstone').addCommand(
      attestCommand(
        async (work) => void (await work({ io } as Session)),
        async () => keys,
      ),
    )
    await runWithin(program, ['attest', 'key', ...argv], io).catch((error: unknown) => line(formatError(error)))
    return lines.join('\n')
  }
  const lineOf = (table: string, keyId: string) => table.split('\n').find((line) => line.startsWith(keyId)) ?? ''

  it('lists, adds, switches, and leaves the old one as retired', async () => {
    const old = keys.active().keyId
    assert.match(lineOf(await attest('list'), old), /^attest-[0-9a-f]{16} +0x[0-9a-fA-F]{40} +active +20.*Z +signs$/)
    const added = await attest('add')
    const next = /^(attest-[0-9a-f]{16}) is announced/.exec(added)?.[1] ?? ''
    assert.match(added, new RegExp(`Then: touchstone attest key switch ${next}$`))
    assert.match(lineOf(await attest('list'), next), / next /)
    assert.equal(await attest('switch', next), `${next} signs from now on. What ${old} signed stays valid.`)
    assert.equal(keys.active().keyId, next)
    const table = await attest('list')
    assert.match(lineOf(table, next), / active .* signs$/)
    assert.match(lineOf(table, old), / retired .*Z +20.*Z$/)
  })

  it('announces a key that is configured elsewhere, and retires it', async () => {
    const added = await attest('add', '--address', '0x1111111111111111111111111111111111111111')
    assert.match(added, /^attest-1111111111111111 is announced.*\nThen configure it, restart/)
    assert.equal(await attest('retire', 'attest-1111111111111111'), 'attest-1111111111111111 is retired.')
  })

  it('revokes a stolen key and goes on with another', async () => {
    const stolen = keys.active().keyId
    const said = await attest('revoke', stolen, '--at', '2026-01-02T03:04:05Z')
    assert.match(said, new RegExp(`^${stolen} is revoked: .*\n${keys.active().keyId} signs from now on\\.$`))
    assert.match(lineOf(await attest('list'), stolen), / revoked .* 2026-01-02T03:04:05Z$/)
  })

  it('explains in one sentence what cannot be done', async () => {
    const { keyId } = keys.active()
    const cases: [argv: string[], sentence: RegExp][] = [
      [['switch', keyId], /^Key attest-[0-9a-f]{16} signs already\.$/],
      [['retire', keyId], /signs at the moment: switch to another one first\.$/],
      [['revoke', 'attest-0000000000000000'], /^There is no key attest-0{16}\.$/],
      [['switch', '../keys'], /A key is named attest- and 16 hex digits/],
      [['add', '--address', '0x12'], /An address is 0x and 40 hex digits/],
      [['add', '--address', '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'], /publicly known/],
      [['revoke', keyId, '--at', '2999-01-01'], /Give a time in the past/],
    ]
    for (const [argv, sentence] of cases) assert.match(await attest(...argv), sentence)
  })
})

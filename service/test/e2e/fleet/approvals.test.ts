/** Approved acts of several processes that are killed at any moment: each is approved once and done once (decisions/0021). */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { operationStore } from '../../../src/chain/transactions/operations.ts'
import { createTransferReads } from '../../../src/chain/transactions/transfer-reads.ts'
import { type AuditBody, readAudit, verifyAudit } from '../../../src/db/audit.ts'
import { databaseActs, recycleAct } from '../../../src/access/approvals/acts.ts'
import { createApprovals } from '../../../src/access/approvals/approvals.ts'
import { createLog } from '../../../src/lib/log.ts'
import { openOwnDatabase, noPostgres } from '../../support/database/databases.ts'
import { hash, minted, operator, startWriterWorld } from '../../support/index/writer-world.ts'

/** `APPROVAL_ACTS=200` runs it as long as a release asks for. */
const acts = Number(process.env['APPROVAL_ACTS'] ?? 24)
/** Kills of each of three actors. */
const kills = 2
const program = fileURLToPath(new URL('../../support/graphql/approver.ts', import.meta.url))

describe('approvals of several processes', { skip: noPostgres }, () => {
  it(`carry out each of ${acts} acts once, when processes are killed meanwhile`, async () => {
    await using opened = new AsyncDisposableStack()
    const database = opened.use(await openOwnDatabase('migrated'))
    const world = opened.adopt(await startWriterWorld(), (it) => it.close())
    const operations = operationStore(database)
    const writer = opened.adopt(world.writerOver(operations), (it) => it.close())
    const transfers = createTransferReads({ rpc: world.rpc, contract: world.contract, chainId: 84532 })
    const approvals = createApprovals({
      database,
      required: new Set(['recycle']),
      hours: 1,
      acts: {
        ...databaseActs({ writeStatus: async () => {} }, async () => {}),
        ...recycleAct({ writer, operations, transfers }),
      },
      log: createLog(() => {}),
    })
    const metadataHashes = Array.from({ length: acts }, () => hash(0))
    const mint = { kind: 'mintBatch', to: operator.address, metadataHashes } as const
    const tokenIds = minted(await writer.write(mint, { idempotencyKey: 'mint' }))
    for (const tokenId of tokenIds) {
      const asked = await approvals.request({ act: 'recycle', subject: String(tokenId) }, { who: 'key:asking0' })
      assert.ok(asked.ok)
    }
    const nonce = await world.nonceOf(operator.address)

    const acknowledged: string[] = []
    /** Runs one process after another: the first ones are killed after some approvals, in the middle of the next. */
    async function actor(name: string): Promise<void> {
      for (const lines of [...Array.from({ length: kills }, (_kill, index) => index + 1), Infinity]) {
        const child = spawn(process.execPath, [program, database.url, world.url, world.contract, name], {
          stdio: ['ignore', 'pipe', 'inherit'],
        })
        const ended = once(child, 'close')
        let done = 0
        for await (const line of createInterface(child.stdout)) {
          acknowledged.push(line)
          done += 1
          if (done === lines) child.kill('SIGKILL')
        }
        const [exit] = (await ended) as [number | null]
        assert.ok(exit === 0 || done >= lines, `process of ${name} ended with ${exit}`)
      }
    }
    await Promise.all(['a', 'b', 'c'].map(actor))

    const all = await approvals.page({}, { after: null, backward: false, limit: acts + 1 })
    assert.deepEqual([all.length, [...new Set(all.map(({ status }) => status))]], [acts, ['DONE']])
    assert.equal(await world.nonceOf(operator.address), nonce + acts, 'one transaction for each act')
    for (const tokenId of tokenIds) assert.equal((await world.recordOf(tokenId)).state, 6)
    assert.equal(new Set(acknowledged).size, acknowledged.length, 'no act was approved twice')
    const bodies = (await readAudit(database, 0n, 100_000)).map(({ body }) => JSON.parse(body) as AuditBody)
    let replays = 0
    for (const { id } of all) {
      const outcomes = bodies.filter(({ approval }) => approval === id).map(({ outcome }) => outcome)
      assert.deepEqual(outcomes.slice(0, 3), ['REQUESTED', 'APPROVED', 'SIGNED'], id)
      const more = outcomes.slice(3)
      assert.ok(
        more.every((outcome) => outcome === 'REPLAYED'),
        `${id}: ${outcomes.join()}`,
      )
      replays += more.length
    }
    // A process that is killed after it signed leaves an act. The next one repeats it under the same key.
    assert.ok(replays <= 3 * kills, `${replays} replays`)
    assert.equal((await verifyAudit(database)).ok, true)
  })
})

/**
 * A process for tests. It approves all requests that wait, several at one time, and carries out what is left, until there is nothing more
 * to do. Arguments: the database, the chain, the contract and its name. It prints the id of each request that it approved.
 */
import { createRpcClient } from '../../../src/chain/rpc/client.ts'
import { operationStore } from '../../../src/chain/transactions/operations.ts'
import { createTransferReads } from '../../../src/chain/transactions/transfer-reads.ts'
import { createWriter } from '../../../src/chain/transactions/writer.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { databaseActs, recycleAct } from '../../../src/access/approvals/acts.ts'
import { createApprovals } from '../../../src/access/approvals/approvals.ts'
import { createLog } from '../../../src/lib/log.ts'
import { keys } from '../index/writer-world.ts'

const [url = '', chain = '', contract = '', name = ''] = process.argv.slice(2)
const database = await openDatabase({ url, poolSize: 6, statementTimeoutMs: 60_000 })
const rpc = createRpcClient({ url: chain, timeoutMs: 60_000 })
const log = createLog(() => {})
const operations = operationStore(database)
const domain = { contract: contract as `0x${string}`, chainId: 84532 }
const writer = createWriter({ ...domain, rpc, keys, operations, log, local: true, receiptWaitMs: 60_000 })
const transfers = createTransferReads({ ...domain, rpc })
const acts = {
  ...databaseActs({ writeStatus: async () => {} }, async () => {}),
  ...recycleAct({ writer, operations, transfers }),
}
const approvals = createApprovals({ database, required: new Set(['recycle']), hours: 1, acts, log, leaseMs: 200 })

const open = ['PENDING', 'APPROVED'] as const
for (;;) {
  const page = { after: null, backward: false, limit: 100 }
  const [waiting = [], begun = []] = await Promise.all(open.map((status) => approvals.page({ status }, page)))
  if (waiting.length + begun.length === 0) break
  const some = waiting.toSorted(() => Math.random() - 0.5).slice(0, 4)
  const decided = await Promise.all(some.map(({ id }) => approvals.approve(id, { who: `local:${name}`, key: null })))
  for (const { ok, approval } of decided) if (ok) process.stdout.write(`${approval?.id}\n`)
  if (waiting.length === 0) {
    await writer.recover()
    await approvals.resume()
  }
}
await writer.close()
await database.close()

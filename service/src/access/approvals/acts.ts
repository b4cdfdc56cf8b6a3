/** The acts that APPROVALS can name: what is read of their subjects, and how each is done once. */
import { createHash } from 'node:crypto'
import { lifecycleStates } from '@touchstone/verdict'
import type { OperationStore } from '../../chain/transactions/operations.ts'
import type { TransferReads } from '../../chain/transactions/transfer-reads.ts'
import type { Writer } from '../../chain/transactions/writer.ts'
import { appendAudit, auditText } from '../../db/audit.ts'
import { flagNamesOf } from '../../domain/registry-event.ts'
import { formatInstant } from '../../domain/text.ts'
import type { BatchStatus } from '../../tap/keys/batch.ts'
import type { TagKeyStore } from '../../tap/keys/store.ts'
import type { RevokedTaps } from '../../tap/revoked-taps.ts'
import { tagStore } from '../../tap/tag-registry.ts'
import { revokeApiKey } from '../api-keys.ts'
import type { Acts } from './approvals.ts'
import { operationKeyOf } from './store.ts'

/**
 * Returns the acts on batches and keys, which are done in the transaction of their approval. `takeBack` begins to take back the taps of
 * revoked batches.
 */
export function databaseActs(
  tagKeys: Pick<TagKeyStore, 'writeStatus'>,
  takeBack: RevokedTaps['takeBack'],
): Pick<Acts, 'batch-revoke' | 'batch-restore' | 'key-deletion'> {
  return {
    'batch-revoke': batchAct(tagKeys, 'revoked', takeBack),
    'batch-restore': batchAct(tagKeys, 'retired', async () => {}),
    'key-deletion': {
      async facts(sql, id) {
        const text = 'select name, scopes, brands from api_key where id = $1 and revoked_at is null'
        const [key] = await sql.query<{ name: string; scopes: string[]; brands: string[] | null }>(text, [id])
        return key ?? null
      },
      apply: revokeApiKey,
    },
  }
}

/** Returns the act that revokes a batch, or that retires a revoked one. */
function batchAct(
  tagKeys: Pick<TagKeyStore, 'writeStatus'>,
  next: 'revoked' | 'retired',
  takeBack: RevokedTaps['takeBack'],
): Acts['batch-revoke'] {
  const act = next === 'revoked' ? 'batch.revoke' : 'batch.restore'
  return {
    async facts(sql, id) {
      const batch = await tagStore(sql).batch(id)
      if (batch === undefined || (batch.status === 'revoked') === (next === 'revoked')) return null
      const { epoch, status, settings } = batch
      return { epoch, status, settings: createHash('sha256').update(JSON.stringify(settings)).digest('hex') }
    },
    async apply(sql, id, by, facts) {
      if (!(await tagStore(sql).setBatchStatus(id, next, facts['status'] as BatchStatus))) return false
      await appendAudit(sql, auditText(by, { act, subject: id, outcome: 'DONE' }))
      return true
    },
    // The ledger reads the status in the database with every tap; the file repeats it.
    async afterwards(id) {
      // The answer waits for at most `takeBackMs`. A later pass of the service takes back the rest.
      await tagKeys.writeStatus(id).finally(() => takeBack(AbortSignal.timeout(takeBackMs)))
    },
  }
}

const takeBackMs = 5_000

/** Failures after which the same write may succeed. */
const temporary: readonly string[] = ['OPERATOR_UNFUNDED', 'FEE_TOO_HIGH', 'OPERATOR_KEY_MISSING']

/** Returns the act of recycling, which the writer sends once under the key of its approval. */
export function recycleAct({
  writer,
  operations,
  transfers,
}: {
  readonly writer: Pick<Writer, 'write'>
  readonly operations: Pick<OperationStore, 'find'>
  readonly transfers: Pick<TransferReads, 'position'>
}): Pick<Acts, 'recycle'> {
  return {
    recycle: {
      async readFacts(subject) {
        const { record, offer } = await transfers.position(BigInt(subject))
        const { state, flags, timestamp } = record
        if (state === 0) return null
        const [reports, changedAt] = [flagNamesOf(flags), formatInstant(timestamp)]
        return { state: lifecycleStates[state], reports, changedAt, nonce: offer.nonce }
      },
      isBegun: async (id) => (await operations.find(operationKeyOf(id))) !== undefined,
      async carryOut(subject, id, by) {
        const request = { kind: 'recycle', tokenId: BigInt(subject) } as const
        const result = await writer.write(request, { idempotencyKey: operationKeyOf(id), by })
        if (!result.ok) return { ok: false, isFinal: !temporary.includes(result.code), message: result.message }
        return { ok: true, block: result.status === 'CONFIRMED' ? result.blockNumber : null }
      },
    },
  }
}

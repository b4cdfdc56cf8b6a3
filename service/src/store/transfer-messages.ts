/** The words that go with a transfer (spec §4.9 `message`), by keccak256 of their UTF-8 bytes: the chain holds the hash only. */
import type { Hex } from '@touchstone/verdict'
import type { Sql } from './database.ts'

export function transferMessageStore(sql: Sql) {
  return {
    /** Keeps a message of at most 8,000 bytes; the same again is no change. */
    async put({ hash, body }: { readonly hash: Hex; readonly body: string }): Promise<void> {
      await sql.query('insert into transfer_message (hash, body) values ($1, $2) on conflict do nothing', [
        new Uint8Array(Buffer.from(hash.slice(2), 'hex')),
        body,
      ])
    },
  }
}

export type TransferMessageStore = ReturnType<typeof transferMessageStore>

/** The settings of a process that serves a local chain with the registry from a database, and its first token. */
import type { Database } from '../../../src/db/database.ts'
import { hash, minted, storeIn, type WriterWorld } from '../index/writer-world.ts'

/** A chain that does not answer, for a service that must not ask it. */
export const noChain = { CHAIN_RPC_URLS: 'http://127.0.0.1:1', CHAIN_CONTRACT: `0x${'5f'.repeat(20)}` } as const

/** Mints token 1, with the operations of this database. */
export async function mintOne(chain: WriterWorld, database: Database): Promise<void> {
  const writer = chain.writerOver(await storeIn(database))
  const mint = { kind: 'mint', to: chain.contract, metadataHash: hash(0) } as const
  minted(await writer.write(mint, { idempotencyKey: 'one' }))
  await writer.close()
}

export type Served = {
  readonly dataDir: string
  readonly database: { readonly url: string }
  readonly chain: { readonly url: string; readonly contract: string }
}

export function envOf({ dataDir, database, chain }: Served) {
  return {
    DATA_DIR: dataDir,
    DATABASE_URL: database.url,
    CHAIN_RPC_URLS: chain.url,
    CHAIN_CONTRACT: chain.contract,
    CHAIN_INTERFACE: 'registry',
    CHAIN_MAX_HEAD_AGE_SECONDS: '0',
  }
}

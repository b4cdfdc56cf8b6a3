/** The settings of a process that serves a local chain with the registry from a database. */

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

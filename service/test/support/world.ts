/**
 * A started world for end-to-end tests: anvil with the registry, PGlite in a folder, the service on a free port.
 * Whatever it writes to the log is kept, so that a test can look for what must never stand there.
 */
import { join } from 'node:path'
import { inspect } from 'node:util'
import { publishedAddresses, publishedKey } from '../../src/domain/published-accounts.ts'
import type { WriteRequest } from '../../src/chain/transactions/calls.ts'
import { readConfig } from '../../src/app/config/config.ts'
import { createLog } from '../../src/lib/log.ts'
import { startService } from '../../src/app/service.ts'
import { keepLog, keepSecret } from './evidence.ts'
import { testFolder } from './folder.ts'
import { startRegistryChain, type TestChain } from './test-chain.ts'
import { copyEmptyPglite } from './database/pglite.ts'
import { canonicalMetadata, type Metadata } from '../../src/assets/metadata.ts'
import type { Hex } from 'viem'

export type World = Awaited<ReturnType<typeof startWorld>>

export const noMetadata: Hex = `0x${'0'.repeat(64)}`
/** The deadlines of the service, but for a machine that does other things too. */
export const patientDeadlines = {
  attemptTimeoutMs: 15_000,
  readTimeoutMs: 30_000,
  rpcTimeoutMs: 30_000,
  receiptWaitMs: 60_000,
  textTimeoutMs: 30_000,
}
const secrets = {
  TAG_KEK: '6b'.repeat(31) + '01',
  STATION_KEK: '73'.repeat(31) + '03',
  TAG_PEPPER: '70'.repeat(31) + '02',
}

/** `env` overrules the settings; `rpcUrl` puts something between the service and the chain; `onChain` runs on the empty chain first. */
export async function startWorld({
  env = {},
  rpcUrl,
  onChain,
}: {
  env?: Record<string, string>
  rpcUrl?: (chain: string) => Promise<string>
  onChain?: (chain: TestChain) => Promise<unknown>
} = {}) {
  const dataDir = testFolder()
  const lines: string[] = []
  const log = createLog((line) => lines.push(line), 'debug')
  const chain = await startRegistryChain(onChain)
  const { rpc, contract, codeHash } = chain
  const [operator] = publishedAddresses as readonly [Hex]
  const settings = {
    DATA_DIR: dataDir,
    VERIFICATION_PORT: '0',
    GATEWAY_PORT: '0',
    GRAPHQL_PORT: '0',
    CHAIN_WS_URLS: chain.url.replace(/^http/, 'ws'), // polls as quick would take a tenth of a core
    CHAIN_RPC_URLS: rpcUrl === undefined ? chain.url : await rpcUrl(chain.url),
    CHAIN_CONTRACT: contract,
    CHAIN_CODE_HASH: codeHash,
    CHAIN_INTERFACE: 'registry',
    CHAIN_MAX_HEAD_AGE_SECONDS: '0',
    CHAIN_CACHE_ENTRIES: '2000', // the table is made for all of them
    RATE_LIMIT_ASSET: '0',
    RATE_LIMIT_TAP: '0',
    OPERATOR_KEY: publishedKey(0),
    ATTESTER_KEY: publishedKey(1),
    DEMO: 'on',
    ...secrets,
    ...env,
  }
  if (!('DATABASE_URL' in settings)) await copyEmptyPglite(join(dataDir, 'store'))
  const service = await startService(readConfig(settings), log, { deadlines: patientDeadlines })
  const { components: parts } = service
  for (const secret of Object.values(secrets)) keepSecret(secret)
  let writes = 0

  /** Writes to the registry and waits until the service's head has it. */
  async function write(request: WriteRequest) {
    const result = await parts.writer.write(request, { idempotencyKey: `test-${(writes += 1)}` })
    if (!result.ok || result.status !== 'CONFIRMED') throw new Error(`write failed: ${inspect(result)}`)
    return result
  }

  async function storedHash(metadata: Metadata): Promise<Hex> {
    const canonical = canonicalMetadata(metadata)
    if (!canonical.ok) throw new Error(canonical.message)
    await parts.metadata.put(canonical)
    return canonical.hash
  }

  return {
    ...service,
    url: service.urls.verification,
    chainUrl: chain.url,
    settings,
    contract,
    codeHash,
    lines,
    rpc,
    write,
    get: (path: string, init?: RequestInit) => fetch(service.urls.verification + path, init),
    async mint(metadata?: Metadata): Promise<bigint> {
      const { tokenIds } = await write({
        kind: 'mint',
        to: operator,
        metadataHash: metadata === undefined ? noMetadata : await storedHash(metadata),
      })
      return tokenIds[0] ?? 0n
    },
    /** Mints a token for each text, in one transaction. */
    async mintMany(texts: readonly Metadata[]): Promise<readonly bigint[]> {
      const metadataHashes = await Promise.all(texts.map(storedHash))
      return (await write({ kind: 'mintBatch', to: operator, metadataHashes })).tokenIds
    },
    async end() {
      keepLog(lines)
      await service.close(200)
      await chain.close()
    },
  }
}

/** Checks of what the service needs: the database, Redis, the providers of the chain, and the clock against them. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { endpointHost, type Hex } from '@touchstone/verdict'
import { keccak256 } from 'viem/utils'
import type { Config } from '../../app/config/config.ts'
import { createRpcClient } from '../../chain/rpc/client.ts'
import { countProviders, requiredAnswers } from '../../chain/rpc/trust.ts'
import { keptTables } from '../../db/backup.ts'
import { isMissingDatabase, isOutOfConnections } from '../../db/errors.ts'
import { missingMigrations, readMigrations } from '../../db/migrate.ts'
import { UnfitDatabaseError } from '../../db/postgres/fitness.ts'
import { isOneDatabase, OtherDatabaseError } from '../../db/postgres/identity.ts'
import { chainId } from '../../domain/chain.ts'
import { reasonOf } from '../../lib/errors.ts'
import { findClosedToUs } from '../../lib/private-folder.ts'
import { isListening } from './port.ts'
import { type CheckFinding, findingsOf, type CheckFindings, ok, warning, wrong } from './finding.ts'
import { checkSigningKeys } from './keys.ts'

/** Beyond this the times of payments and tokens are wrong. */
const mostSkewSeconds = 5

/** `isRunning`: the service of this folder runs, and so has the embedded database. */
export async function checkDatabase(config: Config, isRunning: boolean): Promise<CheckFindings> {
  const { databaseUrl } = config.store
  if (databaseUrl === null) {
    if (isRunning) return ok('The embedded one; the running service has it.')
    const keys = await findingsOf('keys', signingRemedy, () => checkSigningKeys(config, null))
    return [...keys, await checkEmbedded(config)]
  }
  const { openBareDatabase } = await import('../../app/store.ts')
  const database = await openBareDatabase(config, 5_000).catch((error: Error) => {
    if (isMissingDatabase(error.cause))
      return wrong('PostgreSQL answers, and has no database of this name.', 'Run createdb, or correct DATABASE_URL.')
    if (isOutOfConnections(error))
      return wrong(
        'PostgreSQL answers, and has no free connection.',
        'End clients that hold many, or raise the limit: max_connections, or that of the role.',
      )
    if (error.cause instanceof UnfitDatabaseError) return wrong(error.cause.what, error.cause.remedy)
    throw error
  })
  if ('state' in database) return database
  try {
    const missing = await missingMigrations(database, readMigrations())
    const [row] = await database.query<{ now: string; timeout: string }>(
      `select extract(epoch from clock_timestamp())::text as now, current_setting('statement_timeout') as timeout`,
    )
    const pending = `It lacks ${missing.map(({ name }) => name).join(', ')}.`
    return [
      missing.length === 0
        ? ok('PostgreSQL answers, and has the schema of this program.')
        : config.store.migrate
          ? ok(`PostgreSQL answers. ${pending} The next start brings it up to date.`)
          : wrong(pending, 'Run touchstone migrate: MIGRATE is off.'),
      clockFinding('the database', Number(row?.now)),
      ...(missing.length > 0 ? [] : await findingsOf('database', rightsRemedy, () => checkRights(config.store))),
      ...(await findingsOf('keys', signingRemedy, () =>
        checkSigningKeys(config, missing.length > 0 ? null : database),
      )),
    ]
  } finally {
    await database.close()
  }
}

async function checkEmbedded({ dataDir }: Config): Promise<CheckFinding> {
  const { findOtherStore } = await import('../../app/store.ts')
  const other = findOtherStore(dataDir)
  if (other !== null) return wrong(...other)
  if (!existsSync(join(dataDir, 'store'))) return ok('The embedded one; the first start makes it.')
  const closed = await findClosedToUs(join(dataDir, 'store'))
  return closed === null
    ? ok('The embedded one, in DATA_DIR/store; touchstone migrate --check opens it.')
    : wrong(`${closed.path} may not be written (${closed.code}).`, closed.remedy)
}

/** Tables that another role made may be closed to that of DATABASE_URL, which DATABASE_DIRECT_URL need not have. */
async function checkRights({ databaseUrl: url, directUrl }: Config['store']): Promise<readonly CheckFinding[]> {
  if (url === null) return []
  const { openDatabase } = await import('../../db/database.ts')
  const options = { url, directUrl: directUrl ?? url, poolSize: 1, statementTimeoutMs: 5_000 }
  await using database = await openDatabase(options)
  const tables = `{${[...keptTables, 'rate_window'].join(',')}}`
  const closed = await database.query<{ name: string }>(closedStatement, [tables])
  if (closed.length === 0) return []
  const names = closed.map(({ name }) => name).join(', ')
  return [wrong(`The role of DATABASE_URL has no rights to ${names}.`, rightsRemedy)]
}

const signingRemedy = 'Correct the setting, or copy the file from the instance that has the keys.'

const rightsRemedy = 'Grant them as the owner of the tables: «Two roles of the database» in docs/operators-handbook.md.'

const closedStatement = `select relname as name from pg_class where relnamespace = current_schema()::regnamespace
  and relname = any($1::text[]) and not (has_table_privilege(oid, 'select') and has_table_privilege(oid, 'insert')) order by 1`

/** Lists are read from the first database while the replica is away, so that this is a warning. */
export async function checkReplica({ store: { databaseUrl, readUrl } }: Config): Promise<CheckFindings> {
  if (databaseUrl === null || readUrl === null) return []
  const { openDatabase } = await import('../../db/database.ts')
  await using opened = new AsyncDisposableStack()
  const open = async (url: string) => opened.use(await openDatabase({ url, poolSize: 1, statementTimeoutMs: 5_000 }))
  const primary = await open(databaseUrl).catch(() => null)
  if (primary === null) return [] // the check of the database says so
  try {
    const replica = await open(readUrl)
    if (primary.dialect === 'citus')
      return warning('DATABASE_READ_URL has no effect on a cluster.', 'Remove DATABASE_READ_URL.')
    if (await isOneDatabase(primary.query, replica.query)) return ok('The replica answers.')
  } catch (error) {
    return warning(
      `The replica of DATABASE_READ_URL does not answer: ${reasonOf(error)}.`,
      'Start it, or correct DATABASE_READ_URL; lists are read from DATABASE_URL meanwhile.',
    )
  }
  return wrong(new OtherDatabaseError('DATABASE_READ_URL').message, 'Name a replica of DATABASE_URL.')
}

export async function checkRedis({ limits: { redisUrl, store } }: Config): Promise<CheckFindings> {
  if (redisUrl === null || store !== 'redis') return []
  const isThere = await isAccepting(redisUrl)
  const remedy = 'Start Redis, or correct REDIS_URL; limits hold for each process alone meanwhile.'
  if (!isThere) return wrong('Nothing accepts connections under REDIS_URL.', remedy)
  const { openRedisWindows } = await import('../../http/rate-limit/redis.ts')
  const windows = openRedisWindows(redisUrl)
  try {
    const fault = await windows.ready(3_000)
    const unusable = (error: unknown, mend: string) =>
      wrong(`The Redis of REDIS_URL cannot be used: ${reasonOf(error).replace(/\.$/, '')}.`, mend)
    if (fault !== null) return unusable(fault, remedy)
    // A replica, and one that is full, take connections and no count.
    return await windows.consume([{ key: 'doctor', limit: 1, windowMs: 1, count: 0 }], 1).then(
      () => ok('It counts limits, with this name and password.'),
      (error: unknown) =>
        unusable(error, 'Name one in REDIS_URL that takes writes; limits hold for each process alone meanwhile.'),
    )
  } finally {
    windows.close()
  }
}

/** Requests are answered without a collector, so that one that is away is a warning. */
export async function checkCollector({ traces: { endpoint } }: Config): Promise<CheckFindings> {
  if (endpoint === null) return []
  if (await isAccepting(endpoint)) return ok('The collector accepts connections.')
  return warning(
    'Nothing accepts connections under OTEL_EXPORTER_OTLP_ENDPOINT.',
    'Start the collector, or correct the setting; traces are lost meanwhile.',
  )
}

function isAccepting(url: string): Promise<boolean> {
  const { hostname, port, protocol } = new URL(url)
  const usualPort = { 'http:': 80, 'https:': 443 }[protocol] ?? 6379 // redis: and rediss:
  return isListening(hostname.replace(/^\[|\]$/g, ''), Number(port || usualPort), 3_000)
}

export async function checkChain({ chain }: Config): Promise<CheckFindings> {
  const { rpcUrls, contract, trust } = chain
  if (rpcUrls.length === 0) return wrong('No provider is set.', 'Set CHAIN_RPC_URLS to one or more JSON-RPC URLs.')
  const asked = (await Promise.all(rpcUrls.map((url) => checkProvider(url, chain)))).flat()
  const isUsable = asked.every(({ state }) => state !== 'wrong')
  return [
    ...asked,
    ...(isUsable ? await checkReads(chain) : []),
    ...(await findingsOf('chain', 'Correct CHAIN_TRUST, CHAIN_QUORUM or CHAIN_RPC_URLS.', async () => {
      requiredAnswers(chain) // throws where a start would
      return []
    })),
    ...(contract === null ? [wrong('No contract is set.', 'Set CHAIN_CONTRACT to the address of your registry.')] : []),
    ...(countProviders(rpcUrls) === 1
      ? [
          warning(
            `There is one provider only.${trust === 'proof' ? ' It decides which blocks there are.' : ''}`,
            'Add one of another company to CHAIN_RPC_URLS.',
          ),
        ]
      : []),
  ]
}

/** Asks for what every verdict is read with. One provider with proofs is enough for all of them. */
async function checkReads({ rpcUrls, contract, blockTag, trust }: Config['chain']): Promise<readonly CheckFinding[]> {
  const failures = async (...call: readonly [string, readonly unknown[]]) => {
    const asked = rpcUrls.map(async (url) => {
      const answer = createRpcClient({ url, timeoutMs: 5_000 })(...call)
      const reason = await answer.then((found) => (found === null ? 'it answers null' : null), reasonOf)
      return reason === null ? [] : [`${endpointHost(url)}: ${reason}`]
    })
    return (await Promise.all(asked)).flat()
  }
  const tagless = blockTag === 'latest' ? [] : await failures('eth_getBlockByNumber', [blockTag, false])
  const proofless =
    trust !== 'proof' || contract === null ? [] : await failures('eth_getProof', [contract, [], 'latest'])
  const proofState = proofless.length === rpcUrls.length ? wrong : warning
  return [
    ...tagless.map((failure) =>
      wrong(`There is no ${blockTag} block at ${failure}.`, 'Name another provider, or set CHAIN_BLOCK_TAG=latest.'),
    ),
    ...proofless.map((failure) =>
      proofState(`There are no proofs at ${failure}.`, 'Name another provider; CHAIN_TRUST=proof needs eth_getProof.'),
    ),
  ]
}

async function checkProvider(
  url: string,
  { contract, codeHash, maxHeadAgeSeconds, startBlock }: Config['chain'],
): Promise<CheckFindings> {
  const host = endpointHost(url)
  const rpc = createRpcClient({ url, timeoutMs: 5_000 })
  try {
    const id = Number(await rpc('eth_chainId'))
    if (id !== chainId)
      return wrong(
        `${host} serves the chain ${id}, not ${chainId}.`,
        'Name a provider of Base Sepolia in CHAIN_RPC_URLS.',
      )
    const block = (await rpc('eth_getBlockByNumber', ['latest', false])) as { timestamp?: Hex; number?: Hex } | null
    const time = Number(block?.timestamp ?? Number.NaN)
    const age = Date.now() / 1_000 - time
    const found = [ok(`${host} answers; its newest block is ${Math.max(0, Math.round(age))} s old.`)]
    if (age < -mostSkewSeconds) found.push(clockFinding(`a block of ${host}`, time))
    else if (maxHeadAgeSeconds > 0 && age > maxHeadAgeSeconds)
      found.push(await oldHeadFinding(url, time, maxHeadAgeSeconds))
    if (startBlock > BigInt(block?.number ?? 0))
      found.push(
        wrong(
          `CHAIN_START_BLOCK is above the newest block of ${host}, so that nothing is indexed.`,
          'Set it to the block of the contract’s deployment, or any before.',
        ),
      )
    return contract === null
      ? found
      : [...found, checkCode(host, await rpc('eth_getCode', [contract, 'latest']), codeHash)]
  } catch (error) {
    return wrong(
      `${host} does not answer: ${reasonOf(error)}.`,
      'Check the URL, its key and the network, or name another provider.',
    )
  }
}

/** `time` is that of an old block. The provider's own clock says whether it is old, or the clock here is ahead. */
async function oldHeadFinding(url: string, time: number, maxHeadAgeSeconds: number): Promise<CheckFinding> {
  const host = endpointHost(url)
  const theirs = await clockOf(url)
  const clock = theirs === null ? null : clockFinding(`the clock of ${host}`, theirs)
  if (theirs !== null && clock?.state === 'wrong' && theirs - time <= maxHeadAgeSeconds) return clock
  return theirs === null
    ? wrong(
        `${host} is behind, or the clock of this machine is ahead.`,
        'Set the clock right, wait, or name another provider: verdicts would be 502.',
      )
    : wrong(`${host} is behind.`, 'Wait, or name another provider: verdicts would be 502.')
}

/** Returns the time of a server in unix seconds, from its header `Date`; null where it sends none. */
async function clockOf(url: string): Promise<number | null> {
  const bare = Object.assign(new URL(url), { username: '', password: '' }) // an error answer has the header as well
  // No cache answers POST with a former time.
  const request: RequestInit = { method: 'POST', redirect: 'manual', signal: AbortSignal.timeout(3_000) }
  const answer = await fetch(bare, request).catch(() => null)
  await answer?.body?.cancel()
  const time = Date.parse(answer?.headers.get('date') ?? '') / 1_000
  return Number.isNaN(time) ? null : time
}

function checkCode(host: string, code: unknown, codeHash: Hex | undefined): CheckFinding {
  if (typeof code !== 'string' || code === '0x')
    return wrong(
      `CHAIN_CONTRACT has no code on ${host}.`,
      'Correct CHAIN_CONTRACT, or deploy the registry (contracts/README.md).',
    )
  if (codeHash !== undefined && keccak256(code as Hex) !== codeHash)
    return wrong(
      `The code of the contract on ${host} is not that of CHAIN_CODE_HASH.`,
      'Correct CHAIN_CODE_HASH, or do not trust that provider.',
    )
  return ok(`${host} has the code of CHAIN_CONTRACT.`)
}

/** `time` is another clock's, in unix seconds. */
function clockFinding(whose: string, time: number): CheckFinding {
  const skew = Math.round(Date.now() / 1_000 - time)
  const found =
    Math.abs(skew) <= mostSkewSeconds
      ? ok(`It agrees with ${whose}.`)
      : wrong(`It differs from ${whose} by ${skew} s.`, 'Synchronise the clocks with NTP (timedatectl set-ntp true).')
  return { area: 'clock', ...found }
}

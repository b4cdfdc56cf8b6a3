/**
 * The world of tests of the index: anvil with the registry, and a database. A second reader of the chain shares no code with the indexer.
 */
import assert from 'node:assert/strict'
import type { Hex } from '@touchstone/verdict'
import { decodeEventLog, decodeFunctionResult, encodeFunctionData, toEventSelector, toHex } from 'viem'
import { deployVersion1 } from '../version-1.ts'
import { assetRegistryAbi as abi } from '../../../src/domain/registry-abi.ts'
import { sourceOver } from '../rpc-anvil.ts'
import { startRegistryChain } from '../test-chain.ts'
import { eventKinds } from '../../../src/domain/registry-event.ts'
import { createIndexer, type Indexer, type IndexerOptions } from '../../../src/chain/indexer/indexer.ts'
import { verifyIndex } from '../../../src/chain/indexer/verify.ts'
import type { ChainSourceOptions } from '../../../src/chain/rpc/source.ts'
import { registryTypedData } from '../../../src/chain/transactions/typed-data.ts'
import { until } from '../wait.ts'
import { assertSums } from './rows.ts'
import { attester, hash } from './writer-world.ts'
import { createLog } from '../../../src/lib/log.ts'
import type { Database } from '../../../src/db/database.ts'
import type { Payload } from '../../../src/index/outbox.ts'
import { indexStore } from '../../../src/index/store.ts'
import { tokenPages } from '../../../src/index/snapshot.ts'

export { alice, bob, hash, operator } from './writer-world.ts'
type Account = typeof attester
const chainId = 84532

/** The events of tokens by their selector: viem would hash every event of the ABI for every log. */
const eventOf = new Map(
  abi.flatMap((item) =>
    item.type === 'event' && item.name in eventKinds ? [[toEventSelector(item), item] as const] : [],
  ),
)

export type IndexChain = Awaited<ReturnType<typeof startIndexChain>>

/** Blocks are made by transactions only. `version` is that of the registry's contract. */
export async function startIndexChain({ version = 2 }: { version?: 1 | 2 } = {}) {
  const chain = await startRegistryChain(version === 1 ? deployVersion1 : undefined)
  const { rpc, contract } = chain
  const indexers = new Set<Indexer>()
  const endIndexers = async () => {
    await Promise.all([...indexers].map((indexer) => indexer.close()))
    indexers.clear()
  }

  const encode = (functionName: string, args: readonly unknown[]): Hex =>
    encodeFunctionData({ abi, functionName, args } as never)

  /** True when it was mined and did not revert. */
  async function send(from: Hex, functionName: string, args: readonly unknown[]): Promise<boolean> {
    const sent = await chain.send({ from, to: contract, data: encode(functionName, args), gas: 30_000_000 })
    return sent.status === '0x1'
  }

  /** Reads the contract at the head. */
  async function read(functionName: 'getAsset' | 'getTagByToken' | 'pendingTransfer', tokenId: bigint) {
    const data = encodeFunctionData({ abi, functionName, args: [tokenId] })
    const result = (await rpc('eth_call', [{ to: contract, data }, 'latest'])) as Hex
    return [decodeFunctionResult({ abi, functionName, data: result })].flat() as readonly unknown[]
  }

  async function claim(tokenId: bigint, claimant: Account): Promise<boolean> {
    const [tagHash] = (await read('getTagByToken', tokenId)) as [Hex]
    const [, , nonce] = (await read('pendingTransfer', tokenId)) as [Hex, bigint, number]
    const deadline = 2n ** 40n
    const message = { tokenId, claimant: claimant.address, tagHash, tapCounter: 1, nonce, deadline }
    const signed = await attester.signTypedData(registryTypedData({ chainId, contract }, 'Claim', message) as never)
    return send(claimant.address, 'claim', [tokenId, claimant.address, 1, deadline, attester.address, signed, '0x'])
  }

  return {
    ...chain,
    close: async () => {
      await endIndexers()
      await chain.close()
    },
    indexers,
    /** Ends every indexer over this chain: one that a failed test left behind would disturb the next. */
    endIndexers,
    version,
    encode,
    send,
    read,
    claim,
    reorg: (depth: number) => rpc('anvil_reorg', [depth, []]),
    head: async () => BigInt((await rpc('eth_blockNumber')) as Hex),
    source: (options: Partial<ChainSourceOptions> = {}, url = chain.url) =>
      sourceOver([url], { contract, ...options }).source,
    /** All events of tokens, decoded by viem. */
    async events() {
      const logs: OracleLog[] = []
      const head = Number(await rpc('eth_blockNumber'))
      for (let from = 0; from <= head; from += blocksAtOnce) {
        const range = { fromBlock: toHex(from), toBlock: toHex(Math.min(head, from + blocksAtOnce - 1)) }
        logs.push(...((await rpc('eth_getLogs', [{ address: contract, ...range }])) as OracleLog[]))
      }
      return logs.flatMap((log) => {
        const event = eventOf.get(log.topics[0])
        if (event === undefined) return []
        const { args } = decodeEventLog({ abi: [event], topics: log.topics, data: log.data })
        const kind = eventKinds[event.name as keyof typeof eventKinds]
        return [{ kind, log, args: args as unknown as Record<string, bigint | number | Hex> }]
      })
    },
  }
}

/** An answer may have 8 MiB. */
const blocksAtOnce = 300

type OracleLog = {
  topics: [Hex, ...Hex[]]
  data: Hex
  blockNumber: Hex
  blockHash: Hex
  blockTimestamp: Hex
  logIndex: Hex
  transactionHash: Hex
}

export const alone = () => Promise.resolve({ lost: new Promise<void>(() => {}), release: () => Promise.resolve() })

/** An indexer over a chain and a database, that is quick. */
export function indexerOver(chain: IndexChain, database: Database, options: Partial<IndexerOptions> = {}) {
  const indexer = createIndexer({
    source: chain.source(),
    store: indexStore(database),
    contract: chain.contract,
    startBlock: 0n,
    lock: alone,
    pollMs: 20,
    lockPollMs: 20,
    log: createLog(() => {}, 'silent'),
    ...options,
  })
  chain.indexers.add(indexer)
  return indexer
}

/** Waits until the index is at the head of the chain, and of its branch. */
export async function atHead(indexer: Indexer, chain: IndexChain): Promise<void> {
  await until(async () => {
    const { hash: head } = (await chain.rpc('eth_getBlockByNumber', ['latest', false])) as { hash: Hex }
    return (await indexer.status()).indexed?.hash === head
  })
}

/** Asserts that the index equals the chain: tokens, transfers, history, counters. */
export async function assertIndexIsChain(chain: IndexChain, database: Database): Promise<void> {
  const source = chain.source()
  const verified = await verifyIndex({
    source,
    contract: chain.contract,
    interface: 'registry',
    pages: tokenPages(database),
    startBlock: 0n,
  })
  await source.close()
  assert.deepEqual(verified?.differences, [])
  assert.equal(verified?.products, verified?.supply)
  assert.equal(verified?.at, await chain.head())

  const expected = (await chain.events()).map(({ kind, log, args }) => {
    const hashes = [args['metadata'], args['metadataHash'], args['tagHash'], args['reasonHash'], args['messageHash']]
    return [
      [
        BigInt(log.blockNumber),
        Number(log.logIndex),
        String(args['tokenId']),
        kind,
        log.blockHash,
        log.transactionHash,
      ],
      // StateChanged has states where others have addresses.
      kind === eventKinds.StateChanged
        ? [args['from'], args['to'], null, null]
        : [null, null, args['from'], args['to']],
      [args['flags'], args['actor'], args['nonce'], args['expiry'], hashes.find((value) => value !== undefined)],
    ]
      .flat()
      .map(asText)
  })
  const rows = await database.query<Record<string, unknown>>(`select * from history order by block_number, log_index`)
  const columns =
    'block_number log_index token_id kind block_hash tx_hash from_state to_state from_addr to_addr flags actor nonce expiry data'
  const found = rows.map((row) => columns.split(' ').map((name) => asText(row[name])))
  assert.deepEqual(found, expected)

  assert.deepEqual(await transfersOf(database), expectedTransfers(await chain.events()))

  await assertSums(database)
}

type FedToken = Record<'owner' | 'state' | 'flags' | 'metadata' | 'tag', unknown>
type FedEvent = { seq: bigint; token: string; kind: string; retracts: string | null; payload: Payload }

/** Asserts that a client which applies every event that is kept, from the first on, holds what the index holds. */
export async function assertFeedIsIndex(database: Database): Promise<void> {
  const events = await database.query<FedEvent>(
    'select seq, token_id::text as token, kind, retracts, payload from outbox where kind is not null order by seq',
  )
  const live = new Map<string, FedEvent>()
  for (const event of events) {
    if (event.retracts === null) live.set(String(event.seq), event)
    else assert.ok(live.delete(event.retracts.split('-')[0] ?? ''), `${event.retracts} is retracted once`)
  }
  const tokens = new Map<string, FedToken>()
  const transfers = new Map<string, string>()
  for (const { token, kind, payload } of live.values()) {
    const { cause, id = '', status = '' } = payload
    if (kind === 'REGISTERED')
      tokens.set(token, { owner: cause?.to, state: 0, flags: 0, metadata: cause?.data, tag: hash(0) })
    const fed = tokens.get(token)
    if (kind === 'TRANSFER') transfers.set(id, status)
    else if (kind !== 'VERIFIED') assert.ok(fed, `${token} ${kind} comes after its registration`)
    if (kind === 'OWNER_CHANGED') Object.assign(fed ?? {}, { owner: cause?.to })
    if (kind === 'STATE_CHANGED') Object.assign(fed ?? {}, { state: cause?.toState })
    if (kind === 'FLAGS_CHANGED') Object.assign(fed ?? {}, { flags: cause?.flags })
    if (kind === 'METADATA_SET') Object.assign(fed ?? {}, { metadata: cause?.data })
    if (kind === 'TAG_BOUND') Object.assign(fed ?? {}, { tag: cause?.data })
  }
  const zero = "decode(repeat('00', 32), 'hex')"
  const stored = await database.query<FedToken & { token: string }>(
    `select token_id::text as token, owner, state, flags, coalesce(metadata_hash, ${zero}) as metadata,
      coalesce(tag_hash, ${zero}) as tag from asset order by token_id`,
  )
  const found = [...tokens].toSorted(([a], [b]) => (BigInt(a) < BigInt(b) ? -1 : 1))
  assert.deepEqual(
    found.map(([token, { owner, state, flags, metadata, tag }]) =>
      [token, owner, state, flags, metadata, tag].map(asText),
    ),
    stored.map(({ token, owner, state, flags, metadata, tag }) =>
      [token, owner, state, flags, metadata, tag].map(asText),
    ),
  )
  assert.deepEqual(
    [...transfers].map(([id, status]) => ({ id, status })).toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    await database.query(`select id, status from transfer order by id collate "C"`),
  )
}

const transfersOf = (database: Database) =>
  database.query<{ id: string; status: string }>(
    `select id, case when settled_tx is null then 'open' else status end as status from transfer order by id collate "C"`,
  )

/** An offer is open until a sale, a withdrawal in time or another offer. */
export function expectedTransfers(events: Awaited<ReturnType<IndexChain['events']>>) {
  const open = new Map<unknown, { id: string; expiry: bigint }>()
  const statusOf = new Map<string, string>()
  for (const { kind, args, log } of events) {
    const offer = open.get(args['tokenId'])
    const time = BigInt(log.blockTimestamp)
    if (kind === eventKinds.TransferInitiated) {
      const begun = { id: `${args['tokenId']}-${args['nonce']}`, expiry: args['expiry'] as bigint }
      open.set(args['tokenId'], begun)
      statusOf.set(begun.id, 'open')
    }
    if (kind === eventKinds.AssetResold && offer) statusOf.set(offer.id, 'CONFIRMED')
    if (kind === eventKinds.TransferCancelled && offer && time <= offer.expiry) statusOf.set(offer.id, 'FAILED')
  }
  return [...statusOf].map(([id, status]) => ({ id, status })).toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

function asText(value: unknown): string {
  if (value instanceof Uint8Array) return toHex(value)
  if (typeof value === 'string') return value.toLowerCase()
  return typeof value === 'bigint' || typeof value === 'number' ? value.toString() : '–'
}

/** For tests: the schema with its queries and mutations over a local chain and PGlite, without the indexer. */
import { openEmptyPglite } from '../database/pglite.ts'
import type { Hex } from '@touchstone/verdict'
import { graphql } from 'graphql'
import { encodeDeployData, keccak256 } from 'viem'
import wallet from '../../../../contracts/artifacts/TestWallet.json' with { type: 'json' }
import { operationStore } from '../../../src/chain/transactions/operations.ts'
import { createTransferReads } from '../../../src/chain/transactions/transfer-reads.ts'
import type { Writer } from '../../../src/chain/transactions/writer.ts'
import type { ApiKey } from '../../../src/access/api-keys.ts'
import { databaseActs } from '../../../src/access/approvals/acts.ts'
import { createApprovals } from '../../../src/access/approvals/approvals.ts'
import { contextFactory } from '../../../src/graphql/context.ts'
import { indexStores } from '../../../src/graphql/stores.ts'
import { mutationResolvers, type MutationDeps } from '../../../src/graphql/mutations/resolvers.ts'
import { queryResolvers } from '../../../src/graphql/queries/queries.ts'
import { graphqlSchema } from '../../../src/graphql/schema.ts'
import { createLog } from '../../../src/lib/log.ts'
import { type Database } from '../../../src/db/database.ts'
import { classStore } from '../../../src/index/queries/classes.ts'
import { itemStore } from '../../../src/assets/items.ts'
import { metadataStore } from '../../../src/assets/metadata-store.ts'
import { tagStore } from '../../../src/tap/tag-registry.ts'
import type { World } from '../world.ts'
import { operator, startWriterOver } from '../index/writer-world.ts'

/** The payload of a mutation or of transferTypedData. Its members depend on the selection. */
export type Payload = Record<string, unknown> & {
  success: boolean
  errors: readonly { field: string; message: string }[]
}
/** `key` replaces values of an API key that reads and writes. */
export type Ask = (field: string, selection: string, input: object, key?: Partial<ApiKey>) => Promise<Payload>

/** The stores of mutations. */
function storesOf(database: Database) {
  return {
    database,
    items: itemStore(database),
    metadata: metadataStore(database),
    tags: tagStore(database),
    classes: classStore(database),
  }
}

/** Requests for approval, where no act needs one. */
export const noApprovals = (database: Database) =>
  createApprovals({
    database,
    required: new Set(),
    hours: 1,
    acts: databaseActs({ writeStatus: async () => {} }, async () => {}),
    log: createLog(() => {}),
  })

/** Stands in for an index that is behind: mutations answer from receipts. */
const awaitIndexed = async () => false

/** Asks one field with one input. GraphQL errors are thrown with their code. */
function askerOf(database: Database, deps: MutationDeps, contract: Hex): Ask {
  const texts = metadataStore(database)
  const schema = graphqlSchema(
    queryResolvers({
      metadata: { get: async (hash) => (await texts.getMany([hash])).get(hash) },
      chainId: 84532,
      contract,
      chainStatus: async () => ({ head: null, isFaulty: false }),
    }),
    mutationResolvers(deps),
  )
  const createContext = contextFactory(indexStores(database))
  return async (field, selection, input, given = {}) => {
    const [kind, root] =
      field === 'transferTypedData'
        ? (['query', schema.getQueryType()] as const)
        : (['mutation', schema.getMutationType()] as const)
    const inputType = String(root?.getFields()[field]?.args[0]?.type)
    const key: ApiKey = { id: 'testtest', name: 'test', scopes: ['read', 'write'], brands: null, ...given }
    const { data, errors } = await graphql({
      schema,
      source: `${kind} ($input: ${inputType}) { ${field}(input: $input) { success errors { field message } ${selection} } }`,
      variableValues: { input },
      contextValue: createContext(key, 'request'),
    })
    const [error] = errors ?? []
    if (error !== undefined) throw Object.assign(new Error(error.message), { code: error.extensions['code'] })
    return JSON.parse(JSON.stringify(data?.[field])) as Payload
  }
}

/** Asks with the components of a world's service, as if its index were behind. */
export function askerIn({ components, contract, lines, rpc }: World, changed: Partial<MutationDeps> = {}): Ask {
  const { database } = components
  const deps = {
    ...components,
    ...storesOf(database),
    operations: operationStore(database),
    transfers: createTransferReads({ rpc, contract, chainId: 84532 }),
    awaitIndexed,
    itemChanged: async () => {},
    log: createLog((line) => lines.push(line)),
    ...changed,
  }
  return askerOf(database, deps, contract)
}

export type MutationWorld = Awaited<ReturnType<typeof startMutationWorld>>

export async function startMutationWorld() {
  // This machine may be busy with other tests.
  const patience = { receiptWaitMs: 30_000 }
  const world = await startWriterOver(openEmptyPglite, patience)
  const { database, operations, writer } = world
  const lines: string[] = []
  const depsOver = (by: Writer, contract: Hex): MutationDeps => ({
    ...storesOf(database),
    approvals: noApprovals(database),
    writer: by,
    operations,
    transfers: createTransferReads({ rpc: world.rpc, contract, chainId: 84532 }),
    awaitIndexed,
    operator: operator.address,
    resolveTap: async () => ({ kind: 'not_configured' }),
    tagHash: (uid) => keccak256(uid),
    formerBinding: async () => null,
    itemChanged: async () => {},
    log: createLog((line) => lines.push(line)),
  })
  return {
    ...world,
    end: world.close,
    lines,
    resolvers: mutationResolvers(depsOver(writer, world.contract)),
    ask: askerOf(database, depsOver(writer, world.contract), world.contract),
    askOver: (by: Writer, contract = world.contract, changed: Partial<MutationDeps> = {}) =>
      askerOf(database, { ...depsOver(by, contract), ...changed }, contract),
    /** A smart account whose holder's signature is its own (ERC-1271). */
    async deployWallet(holder: Hex): Promise<Hex> {
      const data = encodeDeployData({ abi: wallet.abi, bytecode: wallet.bytecode as Hex, args: [holder] })
      const receipt = await world.rpc('eth_sendTransactionSync', [{ from: holder, data, gas: '0x200000' }])
      return (receipt as { contractAddress: Hex }).contractAddress
    },
  }
}

/** Returns the fields of a payload's errors. */
export const fieldsOf = ({ errors }: Payload): string[] => errors.map(({ field }) => field)

/** For tests: the schema with its queries and mutations over a local chain and PGlite, without the indexer. */
import { openEmptyPglite } from './_pglite.ts'
import type { Hex } from '@touchstone/verdict'
import { setTimeout as delay } from 'node:timers/promises'
import { graphql } from 'graphql'
import { encodeDeployData } from 'viem'
import wallet from '../../contracts/artifacts/TestWallet.json' with { type: 'json' }
import { createTransferReads } from '../src/chain/transfer-reads.ts'
import type { Writer } from '../src/chain/writer.ts'
import type { GraphqlContext } from '../src/graphql/context.ts'
import { createContextOf } from '../src/graphql/loaders.ts'
import { mutationResolvers, type MutationDeps } from '../src/graphql/mutations.ts'
import { queryResolvers } from '../src/graphql/queries.ts'
import { graphqlSchema } from '../src/graphql/resolvers.ts'
import { createLog } from '../src/log.ts'
import { parseGtin } from '../src/passport/gtin.ts'
import { isRegistrableSerial } from '../src/passport/serial.ts'
import { type Database } from '../src/store/database.ts'
import { itemStore } from '../src/store/items.ts'
import { metadataStore } from '../src/store/metadata.ts'
import { productHistoryStore } from '../src/store/product-history.ts'
import { productStore } from '../src/store/products.ts'
import { registrationStore } from '../src/store/registrations.ts'
import { batchStore } from '../src/store/tags-batches.ts'
import { tagStore } from '../src/store/tags.ts'
import { transferMessageStore } from '../src/store/transfer-messages.ts'
import { transferStore } from '../src/store/transfers.ts'
import { operator, startWriterWorld, storeIn } from './_writer-world.ts'

/** What a mutation or transferTypedData answers; its members depend on the selection. */
export type Payload = Record<string, unknown> & {
  success: boolean
  errors: readonly { field: string; message: string }[]
}
export type Ask = (field: string, selection: string, input: object, scopes?: readonly string[]) => Promise<Payload>

const inputTypes: Readonly<Record<string, string>> = {
  registerProduct: 'RegisterProductInput',
  initiateTransfer: 'TransferInput',
  acceptTransfer: 'TransferAnswerInput',
  cancelTransfer: 'TransferAnswerInput',
  transferTypedData: 'TransferTypedDataInput',
  bindTag: 'BindTagInput',
  activateProduct: 'ProductStepInput',
  claimProduct: 'ClaimProductInput',
  flagProduct: 'FlagProductInput',
  resolveProduct: 'ResolveProductInput',
  recycleProduct: 'RecycleProductInput',
}

/** Everything that stands in the database or follows from it. */
export function storesOf(database: Database) {
  return {
    registrations: registrationStore(database),
    items: itemStore(database),
    metadata: metadataStore(database),
    messages: transferMessageStore(database),
    tags: { ...tagStore(database), ...batchStore(database) },
  }
}

/** The index is not there: mutations wait for it in vain, and answer from receipts. */
export const noIndex = { until: async () => false, nudge: () => {} }

export const gs1 = { isGtin: (text: string) => parseGtin(text).ok, isSerial: isRegistrableSerial }

/** Asks one field with one input; what is not a payload is thrown as its message. */
export function askerOf(database: Database, deps: MutationDeps, contract: Hex): Ask {
  const texts = metadataStore(database)
  const schema = graphqlSchema(
    queryResolvers({
      metadata: { get: async (hash) => (await texts.getMany([hash])).get(hash) },
      chainId: 84532,
      contract,
    }),
    mutationResolvers(deps),
  )
  const contextOf = createContextOf({
    products: productStore(database),
    transfers: transferStore(database),
    productHistory: productHistoryStore(database),
  })
  return async (field, selection, input, scopes = ['read', 'write']) => {
    const kind = field === 'transferTypedData' ? 'query' : 'mutation'
    const key = { id: 'testtest', name: 'test', scopes } as GraphqlContext['key']
    const { data, errors } = await graphql({
      schema,
      source: `${kind} ($input: ${inputTypes[field]}!) { ${field}(input: $input) { success errors { field message } ${selection} } }`,
      variableValues: { input },
      contextValue: contextOf(key, 'request'),
    })
    const [error] = errors ?? []
    if (error !== undefined) throw Object.assign(new Error(error.message), { code: error.extensions['code'] })
    return JSON.parse(JSON.stringify(data?.[field])) as Payload
  }
}

export type MutationWorld = Awaited<ReturnType<typeof startMutationWorld>>

export async function startMutationWorld() {
  const database = await openEmptyPglite()
  const world = await startWriterWorld()
  const operations = await storeIn(database)
  // This machine may be busy with other tests.
  const patience = { rpcTimeoutMs: 20_000, receiptWaitMs: 30_000 }
  const writer = world.writerOver(operations, patience)
  const lines: string[] = []
  const depsOver = (by: Writer): MutationDeps => ({
    ...storesOf(database),
    writer: by,
    operations,
    transfers: createTransferReads({ rpcUrl: world.url, contract: world.contract, chainId: 84532, ...patience }),
    reader: { dropHead: () => {} },
    index: noIndex,
    operator: operator.address,
    presentTap: async () => ({ kind: 'not_configured' }),
    itemChanged: async () => {},
    gs1,
    log: createLog((line) => lines.push(line)),
  })
  /** The receipt, as soon as there is one. */
  async function mined(txHash: unknown): Promise<{ contractAddress: Hex }> {
    for (const until = performance.now() + 10_000; performance.now() < until; await delay(5)) {
      const receipt = await world.rpc('eth_getTransactionReceipt', [txHash])
      if (receipt !== null) return receipt as { contractAddress: Hex }
    }
    throw new Error('not mined')
  }
  return {
    ...world,
    database,
    operations,
    writer,
    lines,
    ask: askerOf(database, depsOver(writer), world.contract),
    askOver: (by: Writer) => askerOf(database, depsOver(by), world.contract),
    /** A smart account whose holder's signature is its own (ERC-1271). */
    async deployWallet(holder: Hex): Promise<Hex> {
      const data = encodeDeployData({ abi: wallet.abi, bytecode: wallet.bytecode as Hex, args: [holder] })
      const { contractAddress } = await mined(
        await world.rpc('eth_sendTransaction', [{ from: holder, data, gas: '0x200000' }]),
      )
      return contractAddress
    },
    mined,
    async end() {
      await writer.close()
      await world.close()
      await database.close()
    },
  }
}

/** The fields that a payload complains about. */
export const fieldsOf = ({ errors }: Payload): string[] => errors.map(({ field }) => field)

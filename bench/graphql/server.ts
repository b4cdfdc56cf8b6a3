/**
 * The two servers of `bench:graphql` on one database: `graphql` is the GraphQL host, whose API key it prints. `bare` is `node:http`, which
 * takes the variables alone, runs the same statements and writes JSON.
 */
import type { RequestListener } from 'node:http'
import { text as textOf } from 'node:stream/consumers'
import { cachedMetadata, metadataStore } from '../../service/src/assets/metadata-store.ts'
import { apiKeyStore, createKeyAuthentication, newApiKey } from '../../service/src/access/api-keys.ts'
import { createGraphqlHost } from '../../service/src/hosts/graphql/host.ts'
import { createConnections } from '../../service/src/graphql/connections/connections.ts'
import { createStreamOperation } from '../../service/src/graphql/connections/event-stream.ts'
import { createHttpOperation } from '../../service/src/graphql/server/operation.ts'
import { contextFactory } from '../../service/src/graphql/context.ts'
import { indexStores } from '../../service/src/graphql/stores.ts'
import { createPrepareOperation } from '../../service/src/graphql/server/prepare.ts'
import { parseFilter, type ProductFilter } from '../../service/src/graphql/queries/filter.ts'
import { queryResolvers } from '../../service/src/graphql/queries/queries.ts'
import { graphqlSchema } from '../../service/src/graphql/schema.ts'
import { createFormatError } from '../../service/src/graphql/errors.ts'
import { clientAddresses, clientKeys } from '../../service/src/http/client-ip.ts'
import { createRateLimiter } from '../../service/src/http/rate-limit/limiter.ts'
import type { Keyset } from '../../service/src/db/columns.ts'
import { openDatabase } from '../../service/src/db/database.ts'
import { wholeIndex } from '../../service/src/index/contract.ts'
import { productStore, type ProductRow } from '../../service/src/index/queries/products.ts'
import { transferStore } from '../../service/src/index/queries/transfers.ts'
import { servePort } from '../lib/processes.ts'
import { silent } from '../lib/world.ts'

const [kind, url = ''] = process.argv.slice(2)
const database = await openDatabase({ url })
const products = productStore(database)
const transfers = transferStore(database)
const metadata = cachedMetadata(metadataStore(database))

async function graphqlHost(): Promise<RequestListener> {
  const keys = apiKeyStore(database)
  const { text, hash } = newApiKey()
  await keys.create({ hash, name: 'benchmark', scopes: ['read'] })
  console.log(`key ${text}`)
  const stores = indexStores(database, wholeIndex(database))
  const contract = '0x5fbdb2315678afecb367f032d93f642f64180aa3'
  const schema = graphqlSchema(
    queryResolvers({ metadata, chainId: 84532, contract, chainStatus: async () => ({ head: null, isFaulty: false }) }),
  )
  const steps = {
    prepare: createPrepareOperation({ schema }),
    createContext: contextFactory(stores),
    formatError: createFormatError(silent),
  }
  const connections = createConnections({ keys, log: silent })
  return createGraphqlHost({
    authenticate: createKeyAuthentication({ keys, log: silent }),
    limiter: createRateLimiter({ limit: 1e9 }),
    clientKey: clientKeys([]),
    clientAddress: clientAddresses([]),
    operation: createHttpOperation(steps),
    stream: createStreamOperation({ ...steps, connections, log: silent }),
    playground: (_request, response) => response.end(),
    log: silent,
  })
}

/** Fields that the operations of the benchmark read, by path. */
const bareRoutes: Record<string, (variables: Variables) => Promise<unknown>> = {
  '/page': async ({ first = 50, place = null, filter }) => {
    const by = { condition: parseFilter(filter), by: 'created', descending: true } as const
    const rows = await products.page({ ...by, after: place, limit: first + 1 })
    const withMetadata = async (row: ProductRow) => {
      const body = row.metadataHash === null ? undefined : await metadata.get(row.metadataHash)
      return { ...row, metadata: JSON.parse(body ?? 'null') as unknown }
    }
    return Promise.all(rows.map(withMetadata))
  },
  '/product': async ({ id = '1' }) => {
    const [row] = await products.byTokens([BigInt(id)])
    return { ...row, transfers: row && (await transfers.newestOf([row.tokenId])).get(row.tokenId) }
  },
  '/count': async ({ filter }) => {
    const condition = parseFilter(filter)
    await products.page({ condition, by: 'created', descending: true, after: null, limit: 2 })
    return products.count(condition)
  },
}

type Variables = {
  readonly first?: number
  readonly place?: Keyset
  readonly id?: string
  readonly filter?: ProductFilter
}

const bare: RequestListener = (request, response) => {
  void textOf(request).then(async (text) => {
    const { variables } = JSON.parse(text) as { variables: Variables }
    const result = await bareRoutes[request.url ?? '']?.(variables)
    const body = JSON.stringify(result, (_name, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }).end(body)
  })
}

servePort(kind === 'bare' ? bare : await graphqlHost())

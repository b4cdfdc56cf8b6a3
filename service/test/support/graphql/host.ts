/** The GraphQL host over a database of its own, for tests of reads. Rows are inserted by SQL, queries go over HTTP. */
import type { RequestListener } from 'node:http'
import { apiKeyStore, createKeyAuthentication, newApiKey } from '../../../src/access/api-keys.ts'
import type { Scope } from '../../../src/access/rights.ts'
import { createGraphqlHost, type GraphqlHost } from '../../../src/hosts/graphql/host.ts'
import { createConnections, type ConnectionsOptions } from '../../../src/graphql/connections/connections.ts'
import { createStreamOperation } from '../../../src/graphql/connections/event-stream.ts'
import { createHttpOperation, type OperationSteps } from '../../../src/graphql/server/operation.ts'
import { contextFactory } from '../../../src/graphql/context.ts'
import { indexStores } from '../../../src/graphql/stores.ts'
import { createPrepareOperation } from '../../../src/graphql/server/prepare.ts'
import { prepareTrusted, type TrustedDocuments } from '../../../src/graphql/server/trusted-documents.ts'
import { queryResolvers, type QueryDeps } from '../../../src/graphql/queries/queries.ts'
import { tapResolvers } from '../../../src/graphql/queries/taps.ts'
import { graphqlSchema, type ResolverMap } from '../../../src/graphql/schema.ts'
import { createFormatError } from '../../../src/graphql/errors.ts'
import { cachedMetadata, metadataStore } from '../../../src/assets/metadata-store.ts'
import { clientAddresses, clientKeys } from '../../../src/http/client-ip.ts'
import { listen } from '../../../src/http/listener.ts'
import { createLog } from '../../../src/lib/log.ts'
import type { Database } from '../../../src/db/database.ts'
import type { ProductStore } from '../../../src/index/queries/products.ts'
import { keepLog, keepSecret } from '../evidence.ts'
import { postGraphql } from './client.ts'

const contract = '0x5fbdb2315678afecb367f032d93f642f64180aa3'

export type Answer = {
  readonly status: number
  readonly headers: Headers
  readonly data: Record<string, never> | null | undefined
  readonly errors: readonly { message: string; path?: readonly unknown[]; extensions: Record<string, unknown> }[]
}

type Options = {
  readonly introspection?: boolean
  readonly documents?: TrustedDocuments | null
  readonly resolvers?: readonly ResolverMap[]
  readonly host?: Partial<GraphqlHost>
  readonly connections?: Partial<ConnectionsOptions>
  readonly stuckMs?: number
  readonly times?: Pick<OperationSteps, 'timeoutMs' | 'lastStepMs'>
  readonly products?: Partial<ProductStore>
  readonly past?: Partial<ReturnType<typeof indexStores>['past']>
  readonly chainStatus?: QueryDeps['chainStatus']
}

/** Records the statements of every query. */
export function watched(database: Database): { database: Database; statements: string[] } {
  const statements: string[] = []
  const query: Database['query'] = (text, values) => {
    statements.push(text)
    return database.query(text, values)
  }
  return { database: { ...database, query }, statements }
}

/** Starts the host on a free port; `database` is migrated. */
export async function startGraphql(
  database: Database,
  {
    introspection,
    documents = null,
    resolvers = [],
    host = {},
    connections: connectionOptions = {},
    stuckMs = 14_000,
    times = {},
    products = {},
    past = {},
    chainStatus = async () => ({ head: null, isFaulty: false }),
  }: Options = {},
) {
  const lines: string[] = []
  const log = createLog((line) => lines.push(line), 'debug')
  const keys = apiKeyStore(database)
  const stores = indexStores(database)
  Object.assign(stores.products, products)
  Object.assign(stores.past, past)
  const metadata = cachedMetadata(metadataStore(database))
  const schema = graphqlSchema(
    queryResolvers({ metadata, chainId: 84532, contract, chainStatus }),
    tapResolvers,
    ...resolvers,
  )
  const prepareAny = createPrepareOperation({ schema, ...(introspection !== undefined && { introspection }) })
  const prepare = prepareTrusted(prepareAny, documents)
  const connections = createConnections({ keys, log, ...connectionOptions })
  const createContext = contextFactory(stores)
  const steps = { prepare, createContext, formatError: createFormatError(log), ...times }
  const onRequest = createGraphqlHost({
    authenticate: createKeyAuthentication({ keys, log }),
    clientKey: clientKeys([]),
    clientAddress: clientAddresses([]),
    operation: createHttpOperation(steps),
    stream: createStreamOperation({ ...steps, connections, log, stuckMs }),
    playground: ((_request, response) => response.end('the playground')) satisfies RequestListener,
    log,
    ...host,
  })
  const server = await listen({ name: 'GraphQL host', host: '127.0.0.1', port: 0, onRequest })
  const url = `http://127.0.0.1:${server.port}`

  async function newKey(scopes: readonly Scope[] = ['read', 'write'], brands: readonly string[] | null = null) {
    const { text, hash } = newApiKey()
    keepSecret(text)
    return { text, id: await keys.create({ hash, name: 'test', scopes, brands }) }
  }
  const { text: key } = await newKey()

  async function end() {
    keepLog(lines)
    await connections.close()
    await server.close(200)
  }

  return {
    url,
    key,
    keys,
    newKey,
    prepare,
    createContext,
    connections,
    lines,
    schema,
    async ask(query: string, variables?: Record<string, unknown>, bearer = key): Promise<Answer> {
      const response = await postGraphql(url, bearer, { query, variables })
      const { data, errors = [] } = (await response.json()) as Partial<Answer>
      return { status: response.status, headers: response.headers, data, errors }
    },
    end,
    [Symbol.asyncDispose]: end,
  }
}

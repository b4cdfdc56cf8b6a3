/**
 * The two servers of `bench:gateway`. `ours` is the gateway host of the whole service, without a limit for its one client; `bare` is
 * `node:http`, which reads the body and writes one prepared answer. `argv[3]` is what each needs, as JSON.
 */
import { readConfig } from '../../service/src/app/config/config.ts'
import { startService } from '../../service/src/app/service.ts'
import { seller } from './world.ts'
import { servePort } from '../lib/processes.ts'
import { silent } from '../lib/world.ts'

/** `headers` are name, value, name, value … */
export type Prepared = { readonly status: number; readonly headers: readonly string[]; readonly body: string }
export type Ours = {
  readonly rpcUrl: string
  readonly contract: string
  readonly databaseUrl: string | null
  readonly dataDir: string
  readonly facilitatorKey: string
}

const [, , kind, settings = ''] = process.argv
if (kind === 'bare') serveBare(JSON.parse(settings) as Prepared)
else await serveOurs(JSON.parse(settings) as Ours)

function serveBare({ status, headers, body }: Prepared): void {
  servePort((request, response) => {
    request.on('data', () => {}).on('end', () => response.writeHead(status, [...headers]).end(body))
  })
}

async function serveOurs({ rpcUrl, contract, databaseUrl, dataDir, facilitatorKey }: Ours): Promise<void> {
  const config = readConfig({
    ONLY: 'gateway',
    GATEWAY_PORT: '0',
    RATE_LIMIT_GATEWAY: '1000000000',
    CHAIN_RPC_URLS: rpcUrl,
    CHAIN_CONTRACT: contract,
    CHAIN_MAX_HEAD_AGE_SECONDS: '0',
    DATABASE_URL: databaseUrl ?? '',
    DATA_DIR: dataDir,
    PAYMENT_PAY_TO: seller,
    FACILITATOR_KEY: facilitatorKey,
  })
  const service = await startService(config, silent)
  console.log(`port ${new URL(service.urls.gateway).port}`)
  process.once('SIGTERM', () => void service.close(100).then(() => process.exit(0)))
}

/** Builds the gateway from the components (spec §2.6, §4.7, §4.8). */
import type { Hex } from '@touchstone/verdict'
import { bytesToHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { HostUrls } from '../../discovery/instance.ts'
import { openApiText } from '../../discovery/openapi.ts'
import { createRpcClient } from '../../chain/rpc/client.ts'
import { ConfigError, type Config } from '../config/config.ts'
import { openGateway } from '../../hosts/gateway/gateway.ts'
import type { ClientKey } from '../../http/client-ip.ts'
import type { RateLimiter } from '../../http/rate-limit/limiter.ts'
import { identified } from '../../http/request-id.ts'
import { staticDocument, withDocument } from '../../http/static-document.ts'
import type { Log } from '../../lib/log.ts'
import type { Components } from '../components.ts'
import { chainId } from '../../domain/chain.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { createLedger } from '../../payments/ledger.ts'

export async function openGatewayHost({
  components,
  options,
  rpcUrl,
  urls,
  metrics,
  limiter,
  clientKey,
  log,
}: {
  readonly components: Components
  readonly options: Config['gateway']
  readonly rpcUrl: string
  readonly urls: HostUrls
  readonly metrics: Pick<Metrics, 'watch'> | undefined
  readonly limiter: RateLimiter | undefined
  readonly clientKey: ClientKey
  readonly log: Log
}) {
  const { payTo, price, asset, facilitatorUrl, facilitatorKey } = options
  if (payTo === null) throw new ConfigError('The gateway needs PAYMENT_PAY_TO, the address that buyers pay.')
  const keys = await components.attestationKeys()
  keys.active() // throws the reason when there is none
  const gateway = await openGateway({
    terms: {
      price,
      asset: asset.address,
      payTo,
      resource: `${urls.gateway}/verify`,
      tokenName: asset.name,
      tokenVersion: asset.version,
    },
    allowHighPrice: options.allowHighPrice,
    v2Header: options.v2Header,
    contract: components.contract.toLowerCase() as Hex,
    verdicts: components.verdicts,
    ledger: createLedger(components.database, { chainId, asset: asset.address }),
    rpc: createRpcClient({ url: rpcUrl }),
    facilitator:
      facilitatorUrl === null
        ? { account: privateKeyToAccount(bytesToHex(facilitatorKey ?? new Uint8Array())) }
        : { url: facilitatorUrl },
    keys,
    limiter,
    clientKey,
    log,
  })
  metrics?.watch({ gateway })
  const openApi = staticDocument('application/json', openApiText(urls))
  const onRequest = identified(withDocument('/openapi.json', openApi, gateway.onRequest))
  return { onRequest, close: async () => gateway[Symbol.asyncDispose]() }
}

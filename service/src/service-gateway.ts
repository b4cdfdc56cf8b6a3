/** The gateway made of the parts (spec §2.6, §4.7, §4.8): what it sells, who settles, what signs. */
import type { Hex } from '@touchstone/verdict'
import { bytesToHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { openApiText, type HostUrls } from './agents/openapi-file.ts'
import { createWriterRpc } from './chain/writer-rpc.ts'
import { ConfigError, type Config } from './config.ts'
import { openGateway } from './gateway/gateway.ts'
import type { ClientKey } from './http/client-key.ts'
import type { RateLimiter } from './http/rate-limit.ts'
import { identified } from './http/request-id.ts'
import { staticDocument, withDocument } from './http/static-document.ts'
import type { Log } from './log.ts'
import { chainId, type Parts } from './parts.ts'
import type { OpenHost } from './service-hosts.ts'
import type { Metrics } from './service-metrics.ts'
import { paymentStore } from './store/payments.ts'

export async function openGatewayHost({
  parts,
  options,
  rpcUrl,
  urls,
  metrics,
  limiter,
  clientKey,
  log,
}: {
  readonly parts: Parts
  readonly options: Config['gateway']
  readonly rpcUrl: string
  readonly urls: HostUrls
  readonly metrics: Pick<Metrics, 'watch'> | undefined
  readonly limiter: RateLimiter | undefined
  readonly clientKey: ClientKey
  readonly log: Log
}): Promise<OpenHost> {
  const { payTo, price, asset, facilitatorUrl, facilitatorKey } = options
  if (payTo === null) throw new ConfigError('The gateway needs PAYMENT_PAY_TO, the address that buyers pay.')
  const keys = await parts.attestationKeys()
  keys.active() // without one the start ends here, with the reason
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
    offerHeader: options.v2Header,
    contract: parts.contract.toLowerCase() as Hex,
    verdicts: parts.verdicts,
    ledger: paymentStore(parts.database, { chainId, asset: asset.address }),
    rpc: createWriterRpc({ url: rpcUrl }),
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

/** A gateway for tests and its components: a maker of verdicts, the tables of payments, and a key that signs. */
import type { RequestListener } from 'node:http'
import { type Hex } from '@touchstone/verdict'
import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts'
import { createVerdicts } from '../../../src/assets/verdicts.ts'
import { createAssetReader } from '../../../src/chain/assets/reader.ts'
import { createChainSource } from '../../../src/chain/rpc/source.ts'
import { createRpcClient } from '../../../src/chain/rpc/client.ts'
import type { Database } from '../../../src/db/database.ts'
import { openGateway, type GatewayOptions } from '../../../src/hosts/gateway/gateway.ts'
import { clientKeys } from '../../../src/http/client-ip.ts'
import { identified } from '../../../src/http/request.ts'
import type { Log } from '../../../src/lib/log.ts'
import type { AttestationKey } from '../../../src/payments/attestation/attest.ts'
import { createChannelStore } from '../../../src/payments/channels/store.ts'
import { createNonceSlots } from '../../../src/payments/facilitator/slots.ts'
import { openHolder } from '../../../src/payments/holder.ts'
import { createPaymentLedger } from '../../../src/payments/ledger/ledger.ts'
import { serve } from '../http.ts'
import { asset, payTo, price } from './buyer.ts'

type Parts = Pick<GatewayOptions, 'contract' | 'verdicts' | 'ledger' | 'slots' | 'log'> & {
  rpcUrl: string
  facilitator: PrivateKeyAccount
  signer: AttestationKey
}

export const terms = { price, asset, payTo, resource: '', tokenName: 'USDC', tokenVersion: '2' }

/** Opens a gateway on a free port; `more` overrules its options. */
export async function openTestGateway(
  { rpcUrl, facilitator, signer, ...parts }: Parts,
  more: Partial<GatewayOptions> = {},
) {
  let onRequest: RequestListener = () => {}
  const { url, port, close } = await serve(identified((request, response) => onRequest(request, response)))
  const gateway = await openGateway({
    ...parts,
    terms: { ...terms, resource: `${url}/verify` },
    rpc: createRpcClient({ url: rpcUrl }),
    facilitator: { accounts: [facilitator], walletFactories: [] },
    keys: { active: () => signer, published: () => [published(signer)] },
    clientKey: clientKeys([]),
    ...more,
  })
  onRequest = gateway.onRequest
  const end = async () => {
    await gateway[Symbol.asyncDispose]()
    await close()
  }
  return { ...gateway, url, port, close: end, [Symbol.asyncDispose]: end }
}

/** Opens the tables of payments of one gateway process. */
export async function openTables(database: Database) {
  const holder = await openHolder(database)
  const rows = { chainId: 84532, asset, holder }
  return {
    holder,
    ledger: createPaymentLedger(database, rows),
    slots: createNonceSlots(database, rows),
    channels: createChannelStore(database, rows),
  }
}

/** The maker of verdicts over one provider. */
export function openVerdicts({ rpcUrl, contract, log }: { rpcUrl: string; contract: Hex; log: Log }) {
  const reads = { contract, blockTag: 'latest', maxHeadAgeSeconds: 0, log } as const
  const source = createChainSource({ ...reads, rpcUrls: [rpcUrl], chainId: 84532, trust: 'rpc', quorum: 2 })
  const reader = createAssetReader({
    ...reads,
    source,
    trust: 'rpc',
    interface: 'registry',
    cache: 'off',
    cacheEntries: 10,
  })
  const metadata = { get: async () => undefined }
  const verdicts = createVerdicts({ assets: reader, metadata, contract, maxEntries: 10, log })
  return { source, reader, verdicts }
}

/** A key of viem's. */
export function attestationKey(
  secret = generatePrivateKey(),
): AttestationKey & { account: PrivateKeyAccount; secret: Hex } {
  const account = privateKeyToAccount(secret)
  return {
    account,
    secret,
    address: account.address,
    keyId: `attest-${account.address.slice(2, 18).toLowerCase()}`,
    sign: (hash) => account.sign({ hash }),
  }
}

export const published = ({ address, keyId }: AttestationKey) =>
  ({ address, keyId, validFrom: Math.floor(Date.now() / 1000) - 60, validUntil: null, status: 'active' }) as const

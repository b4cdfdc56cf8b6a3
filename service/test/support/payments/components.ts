/** Components of a gateway, for tests that open one themselves: a maker of verdicts, and a key that signs. */
import { type Hex } from '@touchstone/verdict'
import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts'
import { createVerdicts } from '../../../src/assets/verdicts.ts'
import { createAssetReader } from '../../../src/chain/assets/reader.ts'
import { createChainSource } from '../../../src/chain/rpc/source.ts'
import type { AttestationKey } from '../../../src/payments/attestation/attest.ts'
import type { Log } from '../../../src/lib/log.ts'

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
  const verdicts = createVerdicts({ assets: reader, metadata, contract, chainId: 84532, maxEntries: 10, log })
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

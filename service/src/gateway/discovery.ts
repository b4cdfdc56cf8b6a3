/** What machines read before they buy: /.well-known/x402 (and x402.json), made from the terms of the 402, and /.well-known/attestation.json. */
import { attestationTypedData, type Hex, type PublishedKey } from '@touchstone/verdict'
import { inputSchema, paymentRequiredV2, requirementsV1 } from './offer.ts'
import { chainId, chainName, description, mimeType, type Terms } from './terms.ts'

export function paymentDocument(terms: Terms): string {
  const resource = terms.resource
  const item = { resource, type: 'http', method: 'POST', description, mimeType, inputSchema } as const
  return JSON.stringify({
    x402Version: 2,
    x402Versions: [1, 2],
    resources: [resource],
    items: [
      { ...item, x402Version: 1, accepts: [requirementsV1(terms)] },
      { ...item, ...paymentRequiredV2(terms), resource },
    ],
  })
}

/** How to check an attestation, and by which keys: every key that ever signed. */
export function attestationDocument(contract: Hex, keys: readonly PublishedKey[]): string {
  const { domain, types, primaryType } = attestationTypedData({ ...anything, chainId, verifyingContract: contract })
  return JSON.stringify({
    version: '1',
    chain: chainName,
    chainId,
    contract: domain.verifyingContract,
    encoding: 'abi.encode(uint256,uint8,uint256,uint64)',
    members: ['tokenId', 'state', 'chainId', 'timestamp'],
    hash: 'keccak256',
    signature: 'secp256k1, 65 bytes r, s, v; s in the lower half; v 27 or 28; over the digest without a prefix',
    eip712: { domain, types, primaryType },
    keys,
  })
}

const anything = { tokenId: 0n, state: 0, timestamp: 0, blockNumber: 0, blockHash: `0x${'0'.repeat(64)}` } as const

/**
 * What owners, recipients, claimants and attesters sign (EIP-712; domain `AssetRegistry`, version `1`). `nonce` is
 * pendingTransfer's: InitiateTransfer, Claim, ClaimConsent and Recycle sign the current one, AcceptTransfer and
 * CancelTransfer the one that the offer has raised.
 */
import type { Hex } from '@touchstone/verdict'

const field = <const Name extends string, const Type extends string>(name: Name, type: Type) =>
  ({ name, type }) as const

const registryTypes = {
  Claim: [
    field('tokenId', 'uint256'),
    field('claimant', 'address'),
    field('tagHash', 'bytes32'),
    field('tapCounter', 'uint32'),
    field('nonce', 'uint32'),
    field('deadline', 'uint256'),
  ],
  ClaimConsent: [
    field('tokenId', 'uint256'),
    field('claimant', 'address'),
    field('nonce', 'uint32'),
    field('deadline', 'uint256'),
  ],
  InitiateTransfer: [
    field('tokenId', 'uint256'),
    field('from', 'address'),
    field('to', 'address'),
    field('expiry', 'uint64'),
    field('nonce', 'uint32'),
    field('messageHash', 'bytes32'),
  ],
  AcceptTransfer: [
    field('tokenId', 'uint256'),
    field('from', 'address'),
    field('to', 'address'),
    field('expiry', 'uint64'),
    field('nonce', 'uint32'),
  ],
  CancelTransfer: [field('tokenId', 'uint256'), field('from', 'address'), field('nonce', 'uint32')],
  Recycle: [
    field('tokenId', 'uint256'),
    field('owner', 'address'),
    field('nonce', 'uint32'),
    field('deadline', 'uint256'),
  ],
} as const

export type RegistryMessages = {
  Claim: { tokenId: bigint; claimant: Hex; tagHash: Hex; tapCounter: number; nonce: number; deadline: bigint }
  ClaimConsent: { tokenId: bigint; claimant: Hex; nonce: number; deadline: bigint }
  InitiateTransfer: { tokenId: bigint; from: Hex; to: Hex; expiry: bigint; nonce: number; messageHash: Hex }
  AcceptTransfer: { tokenId: bigint; from: Hex; to: Hex; expiry: bigint; nonce: number }
  CancelTransfer: { tokenId: bigint; from: Hex; nonce: number }
  Recycle: { tokenId: bigint; owner: Hex; nonce: number; deadline: bigint }
}

export type RegistryDomain = Readonly<{ chainId: number; contract: Hex }>

/** Typed data as wallets and viem take it. */
export function registryTypedData<Type extends keyof RegistryMessages>(
  { chainId, contract }: RegistryDomain,
  primaryType: Type,
  message: RegistryMessages[Type],
) {
  return {
    domain: { name: 'AssetRegistry', version: '1', chainId, verifyingContract: contract },
    types: { [primaryType]: registryTypes[primaryType] } as { [Name in Type]: (typeof registryTypes)[Name] },
    primaryType,
    message,
  }
}

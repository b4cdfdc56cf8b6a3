/**
 * Typed data that owners, recipients, claimants and attesters sign (EIP-712; domain `AssetRegistry`, version `1`). `nonce` is
 * pendingTransfer's: InitiateTransfer, Claim, ClaimConsent, Recycle and InvalidateNonce sign the current one, AcceptTransfer and
 * CancelTransfer the one that the offer has raised.
 */
import { checksumAddress, type Hex } from '@touchstone/verdict'
import type { AbiParameterToPrimitiveType } from 'viem'
import { hashTypedData } from 'viem/utils'

export type RegistryDomain = Readonly<{ chainId: number; contract: Hex }>

export type RegistryMessages = {
  [Type in keyof typeof registryTypes]: {
    [Field in (typeof registryTypes)[Type][number] as Field['name']]: AbiParameterToPrimitiveType<Field>
  }
}

/** A message with its type. */
export type Signable = {
  [Type in keyof RegistryMessages]: Readonly<{ type: Type; message: RegistryMessages[Type] }>
}[keyof RegistryMessages]

/** Returns typed data as wallets and viem take it. */
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

/** Returns the digest that a signature is checked against. */
export function registryDigest(domain: RegistryDomain, { type, message }: Signable): Hex {
  return hashTypedData(registryTypedData(domain, type, message) as Parameters<typeof hashTypedData>[0])
}

/** Returns the JSON that `eth_signTypedData_v4` takes: large numbers are decimal text and the domain's type is named (spec §4.9). */
export function walletTypedData(domain: RegistryDomain, { type, message }: Signable) {
  const typed = registryTypedData(domain, type, message)
  return {
    domain: { ...typed.domain, verifyingContract: checksumAddress(domain.contract) },
    types: { EIP712Domain: domainType, ...typed.types },
    primaryType: typed.primaryType,
    message: Object.fromEntries(
      Object.entries(message).map(([name, value]) => [name, typeof value === 'bigint' ? value.toString() : value]),
    ) as Readonly<Record<string, string | number>>,
  }
}

const tokenId = { name: 'tokenId', type: 'uint256' } as const
const from = { name: 'from', type: 'address' } as const
const to = { name: 'to', type: 'address' } as const
const owner = { name: 'owner', type: 'address' } as const
const claimant = { name: 'claimant', type: 'address' } as const
const nonce = { name: 'nonce', type: 'uint32' } as const
const deadline = { name: 'deadline', type: 'uint256' } as const
const expiry = { name: 'expiry', type: 'uint64' } as const

const registryTypes = {
  Claim: [
    tokenId,
    claimant,
    { name: 'tagHash', type: 'bytes32' },
    { name: 'tapCounter', type: 'uint32' },
    nonce,
    deadline,
  ],
  ClaimConsent: [tokenId, claimant, nonce, deadline],
  InitiateTransfer: [tokenId, from, to, expiry, nonce, { name: 'messageHash', type: 'bytes32' }],
  AcceptTransfer: [tokenId, from, to, expiry, nonce],
  CancelTransfer: [tokenId, from, nonce],
  Recycle: [tokenId, owner, nonce, deadline],
  InvalidateNonce: [tokenId, owner, nonce],
} as const

const domainType = [
  { name: 'name', type: 'string' },
  { name: 'version', type: 'string' },
  { name: 'chainId', type: 'uint256' },
  { name: 'verifyingContract', type: 'address' },
] as const

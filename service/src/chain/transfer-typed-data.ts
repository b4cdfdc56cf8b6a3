/**
 * Typed data for wallets (EIP-712): the digest that a signature is checked against, and the JSON that
 * `eth_signTypedData_v4` takes, in which large numbers are decimal text and the domain's type is named (spec §4.9).
 */
import { checksumAddress, type Hex } from '@touchstone/verdict'
import { hashTypedData } from 'viem'
import { registryTypedData } from './write-calls-typed-data.ts'
import type { RegistryDomain, RegistryMessages } from './write-calls-typed-data.ts'

/** What a party signs for a step; the nonce is part of the message. */
export type Signable = {
  [Type in keyof RegistryMessages]: Readonly<{ type: Type; message: RegistryMessages[Type] }>
}[keyof RegistryMessages]

export function digestOf(domain: RegistryDomain, { type, message }: Signable): Hex {
  return hashTypedData(registryTypedData(domain, type, message) as Parameters<typeof hashTypedData>[0])
}

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

const domainType = [
  { name: 'name', type: 'string' },
  { name: 'version', type: 'string' },
  { name: 'chainId', type: 'uint256' },
  { name: 'verifyingContract', type: 'address' },
] as const

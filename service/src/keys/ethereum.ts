/** Keys of Ethereum accounts (secp256k1), in memory or in a key store. viem and the gateway sign with one type. */
import type { Hex } from '@touchstone/verdict'
import type { LocalAccount } from 'viem'
import { bytesToHex, hashMessage, hashTypedData, hexToBytes, keccak256, serializeTransaction, slice } from 'viem/utils'
import { privateKeyToAddress, publicKeyToAddress, toAccount } from 'viem/accounts'
import { recoverSigner, secp256k1Order, signDigest } from '../lib/secp256k1.ts'
import { KeyStoreError, type SigningKey } from './key.ts'

/** Signatures are 65 bytes over a digest, r || s || v. The lower half of the order has s (EIP-2); v is 27 or 28. */
export type EthereumKey = Readonly<{
  /** EIP-55 checksummed. */
  address: Hex
  sign: (digest: Hex) => Promise<Hex>
}>

/** Makes a key in memory. Returns `null` when the bytes are not a private key of secp256k1. */
export function localEthereumKey(privateKey: Uint8Array): EthereumKey | null {
  if (privateKey.length !== 32) return null
  const hex = bytesToHex(privateKey)
  if (BigInt(hex) === 0n || BigInt(hex) >= secp256k1Order) return null
  return { address: privateKeyToAddress(hex), sign: async (digest) => signDigest(digest, privateKey) }
}

/** Wraps a key of a key store. Throws a KeyStoreError for another curve. `sign` throws when the signature is of another key. */
export function storedEthereumKey({ name, curve, publicKey, sign }: SigningKey): EthereumKey {
  if (curve !== 'secp256k1') throw new KeyStoreError(`The key ${name} is on ${curve}; it must be on secp256k1.`)
  const address = publicKeyToAddress(bytesToHex(publicKey))
  return {
    address,
    async sign(digest) {
      const signature = withRecoveryByte(digest, await sign(hexToBytes(digest)), address)
      if (signature === null) throw new KeyStoreError(`The key store signed with another key than ${name}.`)
      return signature
    },
  }
}

/** Makes an account of viem that signs with a key. */
export function accountOf({ address, sign }: EthereumKey): LocalAccount {
  return toAccount({
    address,
    sign: ({ hash }) => sign(hash),
    signMessage: ({ message }) => sign(hashMessage(message)),
    signTypedData: (typedData) => sign(hashTypedData(typedData as Parameters<typeof hashTypedData>[0])),
    async signTransaction(transaction, { serializer = serializeTransaction } = {}) {
      const signature = await sign(keccak256(await serializer(transaction)))
      return serializer(transaction, partsOf(signature))
    },
  })
}

/** Splits a signature of an `EthereumKey` into what a transaction carries. */
function partsOf(signature: Hex) {
  const v = Number(slice(signature, 64))
  return { r: slice(signature, 0, 32), s: slice(signature, 32, 64), v: BigInt(v), yParity: v - 27 }
}

/** Moves s to the lower half. Of the two values of v, one recovers the address from the digest; null: neither does. */
function withRecoveryByte(digest: Hex, raw: Uint8Array, address: Hex): Hex | null {
  if (raw.length !== 64) return null
  const [r, s] = [raw.subarray(0, 32), BigInt(bytesToHex(raw.subarray(32)))]
  const low = s > secp256k1Order / 2n ? secp256k1Order - s : s
  if (low <= 0n) return null
  const candidates = ['1b', '1c'].map((v): Hex => `${bytesToHex(r)}${low.toString(16).padStart(64, '0')}${v}` as Hex)
  return candidates.find((signature) => recoverSigner(digest, signature) === address.toLowerCase()) ?? null
}

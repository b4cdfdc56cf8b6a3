/** The hash of typed structured data (EIP-712), for structs without inner structs and arrays. */
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { abiEncode, bytesOf, type Hex, keccak256, word } from '../lib/hex.ts'

/** The domain of every typed form here. `verifyingContract` may have any case. */
type Domain = Readonly<{ name: string; version: string; chainId: number; verifyingContract: Hex }>

/** One member of a struct. */
type Field = Readonly<{ name: string; type: string }>

/** The members of a struct by name. Integers may be decimal text, bytes are hex. */
type Members = Readonly<Record<string, string | number | boolean>>

/** Typed data in plain JSON, as wallets and libraries take it (`eth_signTypedData_v4`). */
export type TypedData<Name extends string = string, Message extends Members = Members> = Readonly<{
  domain: Domain
  types: Readonly<Record<Name, readonly Field[]>>
  primaryType: Name
  message: Message
}>

/** The digest that is signed: `keccak256(0x1901 ‖ domainSeparator ‖ hashStruct(message))`. */
export function typedDataDigest<Name extends string>({ domain, types, primaryType, message }: TypedData<Name>): Hex {
  const words = abiEncode(BigInt(domainSeparator(domain)), hashStruct(primaryType, types[primaryType], message))
  return keccak256(concatBytes(Uint8Array.of(0x19, 0x01), words))
}

/** The hash of a domain, which a contract answers as `DOMAIN_SEPARATOR` (EIP-2612). */
export function domainSeparator(domain: Domain): Hex {
  return `0x${word(hashStruct('EIP712Domain', domainFields, domain))}`
}

/** The members of `Domain`, in the order of EIP-712. */
const domainFields: readonly Field[] = [
  { name: 'name', type: 'string' },
  { name: 'version', type: 'string' },
  { name: 'chainId', type: 'uint256' },
  { name: 'verifyingContract', type: 'address' },
]

function hashStruct(name: string, fields: readonly Field[], members: Members): bigint {
  const type = `${name}(${fields.map((field) => `${field.type} ${field.name}`).join(',')})`
  return BigInt(keccak256(abiEncode(hashText(type), ...fields.map((field) => encode(field, members)))))
}

/** The word of a member: its hash where its length varies. */
function encode({ name, type }: Field, { [name]: value = 0 }: Members): bigint {
  if (type === 'string') return hashText(String(value))
  if (type === 'bytes') return BigInt(keccak256(bytesOf(value) ?? new Uint8Array()))
  return BigInt(value)
}

function hashText(text: string): bigint {
  return BigInt(keccak256(utf8ToBytes(text)))
}

/**
 * Which tokens a log of the registry touches (spec §2.5): every write to a record emits an event that names its token.
 * An event that is not in the table might stand for a write to any of them.
 */
import { keccak_256 } from '@noble/hashes/sha3.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import type { Touched } from './follower-window.ts'
import type { ChainLog } from './source.ts'

/** Where an event names its token; `none`: it is about no record; `all`: about any; `code`: other code answers from now on. */
type Place = 'topic 1' | 'topic 3' | 'first word' | 'none' | 'all' | 'code'

const places: Readonly<Record<string, Place>> = {
  'AssetMinted(uint256,address,bytes32)': 'topic 1',
  'TagBound(uint256,bytes32)': 'topic 1',
  'StateChanged(uint256,uint8,uint8,address)': 'topic 1',
  'AssetResold(uint256,address,address)': 'topic 1',
  'FlagsChanged(uint256,uint8,address,bytes32)': 'topic 1',
  'MetadataHashSet(uint256,bytes32)': 'topic 1',
  'TransferInitiated(uint256,address,address,uint64,uint32,bytes32)': 'topic 1',
  'TransferCancelled(uint256,uint32,address)': 'topic 1',
  'Transfer(address,address,uint256)': 'topic 3',
  'Approval(address,address,uint256)': 'topic 3',
  'Locked(uint256)': 'first word',
  'MetadataUpdate(uint256)': 'first word',
  'BatchMetadataUpdate(uint256,uint256)': 'all',
  'ApprovalForAll(address,address,bool)': 'none',
  'ContractURIUpdated()': 'none',
  'RoleGranted(bytes32,address,address)': 'none',
  'RoleRevoked(bytes32,address,address)': 'none',
  'RoleAdminChanged(bytes32,bytes32,bytes32)': 'none',
  'EIP712DomainChanged()': 'all',
  'Upgraded(address)': 'code',
  'BeaconUpgraded(address)': 'code',
  'AdminChanged(address,address)': 'code',
}

/** By the first topic: keccak256 of the event's signature. */
const placeOf = new Map(Object.entries(places).map(([signature, place]) => [topicOf(signature), place]))

/** `newCode`: a proxy changed what it runs, so that its events prove nothing any more. */
export function touchedBy(logs: readonly ChainLog[]): Touched & Readonly<{ newCode: boolean }> {
  const named = logs.map(tokenOf)
  const tokens = named.includes('all') ? 'all' : new Set(named.filter((token) => typeof token === 'bigint'))
  return { tokens, silent: logs.length === 0, newCode: logs.some((log) => placeOf.get(log.topics[0] ?? '') === 'code') }
}

function tokenOf({ topics, data }: ChainLog): bigint | 'none' | 'all' {
  const place = placeOf.get(topics[0] ?? '')
  if (place === 'none') return 'none'
  if (place === 'topic 1') return wordOr(topics[1])
  if (place === 'topic 3') return wordOr(topics[3])
  if (place === 'first word') return wordOr(data.slice(0, 66))
  return 'all'
}

/** An event of the right name and another shape is an event that is not known. */
function wordOr(text: string | undefined): bigint | 'all' {
  return text !== undefined && text.length === 66 ? BigInt(text) : 'all'
}

function topicOf(signature: string): string {
  return `0x${bytesToHex(keccak_256(utf8ToBytes(signature)))}`
}

/** Every write to the registry (spec §3, §4.9): its values, the operator key that sends it, and its call data. */
import type { Hex } from '@touchstone/verdict'
import {
  type ContractFunctionArgs,
  decodeFunctionData,
  encodeFunctionData,
  type EncodeFunctionDataParameters,
  parseTransaction,
} from 'viem'
import { assetRegistryAbi as abi } from '../../domain/registry-abi.ts'

/** Keys that the writer may hold; one account may have several roles. `relayer` pays for what others have signed. */
export type OperatorRole = 'issuer' | 'binder' | 'qa' | 'attester' | 'guardian' | 'recycler' | 'relayer'

/** Times (`deadline`, `expiry`) are unix seconds, `bits` are `assetFlags`, hashes are 32 bytes. */
export type WriteRequest =
  | Readonly<{ kind: 'mint'; to: Hex; metadataHash: Hex }>
  | Readonly<{ kind: 'mintBatch'; to: Hex; metadataHashes: readonly Hex[] }>
  | Readonly<{ kind: 'mintWithId'; to: Hex; tokenId: bigint; metadataHash: Hex }>
  | Readonly<{ kind: 'setMetadataHash'; tokenId: bigint; metadataHash: Hex }>
  | Readonly<{ kind: 'bindTag'; tokenId: bigint; tagHash: Hex }>
  | Readonly<{ kind: 'activate' | 'restock' | 'recycle'; tokenId: bigint }>
  | ClaimRequest
  | Readonly<{ kind: 'flag' | 'resolve'; tokenId: bigint; bits: number; reasonHash: Hex }>
  | Readonly<{ kind: 'recycleBySig'; tokenId: bigint; deadline: bigint; signature: Hex }>
  | Readonly<{
      kind: 'initiateTransferBySig'
      tokenId: bigint
      to: Hex
      expiry: bigint
      messageHash: Hex
      signature: Hex
    }>
  | Readonly<{ kind: 'acceptTransferBySig'; tokenId: bigint; signature: Hex }>
  | Readonly<{ kind: 'cancelTransferBySig'; tokenId: bigint; signer: Hex; signature: Hex }>

type ClaimRequest = Readonly<{
  kind: 'claim'
  tokenId: bigint
  claimant: Hex
  tapCounter: number
  deadline: bigint
  attester: Hex
  attesterSignature: Hex
  claimantSignature: Hex
}>

type WriteKind = WriteRequest['kind']
type WriteCall = Readonly<{ role: OperatorRole; data: Hex }>

/** A transaction may use 16.7 M gas (EIP-7825), about 290 mints. */
const maxBatch = 200

/** Returns the call of a request, or `null` when a value does not fit the contract's types. */
export function writeCallOf(request: WriteRequest): WriteCall | null {
  if (request.kind === 'mintBatch' && (request.metadataHashes.length === 0 || request.metadataHashes.length > maxBatch))
    return null
  try {
    const args = (argsOf[request.kind] as (request: WriteRequest) => readonly unknown[])(request) // keyed by its kind
    const data = encodeFunctionData({ abi, functionName: request.kind, args } as EncodeFunctionDataParameters)
    return { role: roleOf(request), data }
  } catch {
    return null
  }
}

/** TAMPER is the attester's evidence, not a guardian's report. */
const tamper = 0x20

function roleOf(request: WriteRequest): OperatorRole {
  if (request.kind === 'flag' || request.kind === 'resolve')
    return (request.bits & tamper) === 0 ? 'guardian' : 'attester'
  return roles[request.kind]
}

const roles: Readonly<Record<Exclude<WriteKind, 'flag' | 'resolve'>, OperatorRole>> = {
  mint: 'issuer',
  mintBatch: 'issuer',
  mintWithId: 'issuer',
  setMetadataHash: 'issuer',
  bindTag: 'binder',
  activate: 'qa',
  restock: 'issuer',
  recycle: 'recycler',
  claim: 'relayer',
  recycleBySig: 'relayer',
  initiateTransferBySig: 'relayer',
  acceptTransferBySig: 'relayer',
  cancelTransferBySig: 'relayer',
}

/** Each kind of request is a function of the contract. */
const argsOf: {
  readonly [Kind in WriteKind]: (
    request: WriteRequest & { kind: Kind },
  ) => ContractFunctionArgs<typeof abi, 'nonpayable', Kind>
} = {
  mint: (r) => [r.to, r.metadataHash],
  mintBatch: (r) => [r.to, r.metadataHashes],
  mintWithId: (r) => [r.to, r.tokenId, r.metadataHash],
  setMetadataHash: (r) => [r.tokenId, r.metadataHash],
  bindTag: (r) => [r.tokenId, r.tagHash],
  activate: (r) => [r.tokenId],
  restock: (r) => [r.tokenId],
  recycle: (r) => [r.tokenId],
  claim: (r) => [r.tokenId, r.claimant, r.tapCounter, r.deadline, r.attester, r.attesterSignature, r.claimantSignature],
  flag: (r) => [r.tokenId, r.bits, r.reasonHash],
  resolve: (r) => [r.tokenId, r.bits, r.reasonHash],
  recycleBySig: (r) => [r.tokenId, r.deadline, r.signature],
  initiateTransferBySig: (r) => [r.tokenId, r.to, r.expiry, r.messageHash, r.signature],
  acceptTransferBySig: (r) => [r.tokenId, r.signature],
  cancelTransferBySig: (r) => [r.tokenId, r.signer, r.signature],
}

/**
 * Returns the request that a stored transaction carries out, so that a repeat finds its outcome although the asset has changed since.
 * `null` for the other kinds, whose request follows from the caller's input alone.
 */
export function sentRequest(raw: Hex): WriteRequest | null {
  const call = decodeFunctionData({ abi, data: parseTransaction(raw).data ?? '0x' })
  if (call.functionName === 'claim') {
    const [tokenId, claimant, tapCounter, deadline, attester, attesterSignature, claimantSignature] = call.args
    return { kind: 'claim', tokenId, claimant, tapCounter, deadline, attester, attesterSignature, claimantSignature }
  }
  if (call.functionName === 'resolve') {
    const [tokenId, bits, reasonHash] = call.args
    return { kind: 'resolve', tokenId, bits, reasonHash }
  }
  if (call.functionName === 'acceptTransferBySig') {
    const [tokenId, signature] = call.args
    return { kind: 'acceptTransferBySig', tokenId, signature }
  }
  if (call.functionName === 'cancelTransferBySig') {
    const [tokenId, signer, signature] = call.args
    return { kind: 'cancelTransferBySig', tokenId, signer, signature }
  }
  return null
}

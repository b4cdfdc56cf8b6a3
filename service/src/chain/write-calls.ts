/** Every write to the registry (spec §3, §4.9): what it needs, which operator key sends it, and its call data. */
import type { Hex } from '@touchstone/verdict'
import { encodeFunctionData } from 'viem'
import { assetRegistryAbi as abi } from './abi.ts'

/** Keys that the writer may hold; one account may hold several. `relayer` pays for what others have signed. */
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
export type WriteCall = Readonly<{ role: OperatorRole; data: Hex }>

/** A transaction may use 16.7 M gas (EIP-7825), about 290 mints. */
const maxBatch = 200

/** The call of a request, or `null` when a value does not fit the contract's types. */
export function writeCallOf(request: WriteRequest): WriteCall | null {
  if (request.kind === 'mintBatch' && (request.metadataHashes.length === 0 || request.metadataHashes.length > maxBatch))
    return null
  try {
    const callOf = calls[request.kind] as (request: WriteRequest) => WriteCall // the table's key is the request's kind
    return callOf(request)
  } catch {
    return null
  }
}

const tamper = 0x20

const calls: { readonly [Kind in WriteKind]: (request: WriteRequest & { kind: Kind }) => WriteCall } = {
  mint: (r) => ({
    role: 'issuer',
    data: encodeFunctionData({ abi, functionName: 'mint', args: [r.to, r.metadataHash] }),
  }),
  mintBatch: (r) => ({
    role: 'issuer',
    data: encodeFunctionData({ abi, functionName: 'mintBatch', args: [r.to, r.metadataHashes] }),
  }),
  mintWithId: (r) => ({
    role: 'issuer',
    data: encodeFunctionData({ abi, functionName: 'mintWithId', args: [r.to, r.tokenId, r.metadataHash] }),
  }),
  setMetadataHash: (r) => ({
    role: 'issuer',
    data: encodeFunctionData({ abi, functionName: 'setMetadataHash', args: [r.tokenId, r.metadataHash] }),
  }),
  bindTag: (r) => ({
    role: 'binder',
    data: encodeFunctionData({ abi, functionName: 'bindTag', args: [r.tokenId, r.tagHash] }),
  }),
  activate: (r) => ({ role: 'qa', data: encodeFunctionData({ abi, functionName: 'activate', args: [r.tokenId] }) }),
  restock: (r) => ({ role: 'issuer', data: encodeFunctionData({ abi, functionName: 'restock', args: [r.tokenId] }) }),
  recycle: (r) => ({ role: 'recycler', data: encodeFunctionData({ abi, functionName: 'recycle', args: [r.tokenId] }) }),
  claim: (r) => ({
    role: 'relayer',
    data: encodeFunctionData({
      abi,
      functionName: 'claim',
      args: [r.tokenId, r.claimant, r.tapCounter, r.deadline, r.attester, r.attesterSignature, r.claimantSignature],
    }),
  }),
  // TAMPER is the attester's evidence, not a guardian's report.
  flag: (r) => ({
    role: (r.bits & tamper) === 0 ? 'guardian' : 'attester',
    data: encodeFunctionData({ abi, functionName: 'flag', args: [r.tokenId, r.bits, r.reasonHash] }),
  }),
  resolve: (r) => ({
    role: (r.bits & tamper) === 0 ? 'guardian' : 'attester',
    data: encodeFunctionData({ abi, functionName: 'resolve', args: [r.tokenId, r.bits, r.reasonHash] }),
  }),
  recycleBySig: (r) => ({
    role: 'relayer',
    data: encodeFunctionData({ abi, functionName: 'recycleBySig', args: [r.tokenId, r.deadline, r.signature] }),
  }),
  initiateTransferBySig: (r) => ({
    role: 'relayer',
    data: encodeFunctionData({
      abi,
      functionName: 'initiateTransferBySig',
      args: [r.tokenId, r.to, r.expiry, r.messageHash, r.signature],
    }),
  }),
  acceptTransferBySig: (r) => ({
    role: 'relayer',
    data: encodeFunctionData({ abi, functionName: 'acceptTransferBySig', args: [r.tokenId, r.signature] }),
  }),
  cancelTransferBySig: (r) => ({
    role: 'relayer',
    data: encodeFunctionData({ abi, functionName: 'cancelTransferBySig', args: [r.tokenId, r.signer, r.signature] }),
  }),
}

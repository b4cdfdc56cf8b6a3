/** Every write to the registry (spec §3, §4.9): its values, the operator key that sends it, and its call data. */
import type { Hex } from '@touchstone/verdict'
import type { EncodeFunctionDataParameters } from 'viem'
import { decodeFunctionData, encodeFunctionData, parseTransaction } from 'viem/utils'
import { assetRegistryAbi as abi } from '../../domain/registry-abi.ts'
import type { OperationStore } from './operations.ts'

/** Keys that the writer may hold; one account may have several roles. `relayer` pays for what others have signed. */
export type OperatorRole = 'issuer' | 'binder' | 'qa' | 'attester' | 'guardian' | 'recycler' | 'relayer'

/** Times (`deadline`, `expiry`) are unix seconds, `bits` are `assetFlags`, hashes are 32 bytes. */
export type WriteRequest =
  | Readonly<{ kind: 'mint'; to: Hex; metadataHash: Hex }>
  | Readonly<{ kind: 'mintBatch'; to: Hex; metadataHashes: readonly Hex[] }>
  | Readonly<{ kind: 'mintWithId'; to: Hex; tokenId: bigint; metadataHash: Hex }>
  | Readonly<{ kind: 'setMetadataHash'; tokenId: bigint; metadataHash: Hex }>
  | Readonly<{ kind: 'bindTag'; tokenId: bigint; tagHash: Hex }>
  | Readonly<{ kind: 'activate' | 'restock' | 'recycle' | 'announceRecycle'; tokenId: bigint }>
  | Readonly<{
      kind: 'claim'
      tokenId: bigint
      claimant: Hex
      tapCounter: number
      deadline: bigint
      attester: Hex
      attesterSignature: Hex
      claimantSignature: Hex
    }>
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
  | Readonly<{ kind: 'acceptTransferBySig' | 'invalidateNonceBySig'; tokenId: bigint; signature: Hex }>
  | Readonly<{ kind: 'cancelTransferBySig'; tokenId: bigint; signer: Hex; signature: Hex }>

type WriteCall = Readonly<{ role: OperatorRole; data: Hex }>

/** A transaction may use 16.7 M gas (EIP-7825), about 290 mints. */
const maxBatch = 200

/** Returns the call of a request, or `null` when a value does not fit the contract's types. */
export function writeCallOf(request: WriteRequest): WriteCall | null {
  if (request.kind === 'mintBatch' && (request.metadataHashes.length === 0 || request.metadataHashes.length > maxBatch))
    return null
  const [role, ...names] = writes[request.kind]
  const values = request as unknown as Readonly<Record<string, unknown>>
  try {
    const args = names.map((name) => values[name])
    const data = encodeFunctionData({ abi, functionName: request.kind, args } as EncodeFunctionDataParameters)
    return { role: isTamper(request) ? 'attester' : role, data }
  } catch {
    return null
  }
}

const tamper = 0x20

/** TAMPER is the attester's evidence, not a guardian's report. */
function isTamper(request: WriteRequest): boolean {
  return (request.kind === 'flag' || request.kind === 'resolve') && (request.bits & tamper) !== 0
}

/** Each kind of request is a function of the contract. It has the key that sends it, and its arguments in order. */
const writes: {
  readonly [Kind in WriteRequest['kind']]: readonly [OperatorRole, ...(keyof (WriteRequest & { kind: Kind }))[]]
} = {
  mint: ['issuer', 'to', 'metadataHash'],
  mintBatch: ['issuer', 'to', 'metadataHashes'],
  mintWithId: ['issuer', 'to', 'tokenId', 'metadataHash'],
  setMetadataHash: ['issuer', 'tokenId', 'metadataHash'],
  bindTag: ['binder', 'tokenId', 'tagHash'],
  activate: ['qa', 'tokenId'],
  restock: ['issuer', 'tokenId'],
  recycle: ['recycler', 'tokenId'],
  announceRecycle: ['recycler', 'tokenId'],
  claim: [
    'relayer',
    'tokenId',
    'claimant',
    'tapCounter',
    'deadline',
    'attester',
    'attesterSignature',
    'claimantSignature',
  ],
  flag: ['guardian', 'tokenId', 'bits', 'reasonHash'],
  resolve: ['guardian', 'tokenId', 'bits', 'reasonHash'],
  recycleBySig: ['relayer', 'tokenId', 'deadline', 'signature'],
  initiateTransferBySig: ['relayer', 'tokenId', 'to', 'expiry', 'messageHash', 'signature'],
  acceptTransferBySig: ['relayer', 'tokenId', 'signature'],
  cancelTransferBySig: ['relayer', 'tokenId', 'signer', 'signature'],
  invalidateNonceBySig: ['relayer', 'tokenId', 'signature'],
}

/** The kinds whose request is read from the chain when it is repeated. */
const repeatable = [
  'mint',
  'mintWithId',
  'setMetadataHash',
  'claim',
  'resolve',
  'acceptTransferBySig',
  'cancelTransferBySig',
] as const

/**
 * Returns the request that was sent under a key. So a repeat finds its outcome although the asset has changed since. Returns `null` for the
 * kinds whose request follows from the caller's input alone, and undefined where nothing was sent.
 */
export async function sentRequest(
  operations: Pick<OperationStore, 'find'>,
  key: string,
): Promise<WriteRequest | null | undefined> {
  const operation = await operations.find(key)
  return operation && requestIn(operation.raw)
}

/**
 * Returns the claim that was sent when it has the same values, else null. Values that are left out are not compared. Nor is the attester's
 * signature: a claim raises the nonce that it covers.
 */
export function repeatedClaim(
  sent: WriteRequest | null,
  { tokenId, claimant, deadline, signature }: Readonly<ClaimTerms>,
): WriteRequest | null {
  const isSame =
    sent?.kind === 'claim' &&
    sent.tokenId === tokenId &&
    sent.claimant.toLowerCase() === claimant &&
    (deadline ?? sent.deadline) === sent.deadline &&
    (signature?.toLowerCase() ?? sent.claimantSignature) === sent.claimantSignature
  return isSame ? sent : null
}

/** `signature` is the claimant's. */
type ClaimTerms = { tokenId: bigint; claimant: Hex; deadline?: bigint | undefined; signature?: Hex | undefined }

function requestIn(raw: Hex): WriteRequest | null {
  const { functionName, args } = decodeFunctionData({ abi, data: parseTransaction(raw).data ?? '0x' })
  const kind = repeatable.find((name) => name === functionName)
  if (kind === undefined) return null
  const [, ...names] = writes[kind]
  const values = names.map((name, index) => [name, args?.[index]] as const)
  return { kind, ...Object.fromEntries(values) } as WriteRequest
}

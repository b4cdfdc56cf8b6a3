/** The attester's half of a claim: it confirms, after an accepted tap, that the claimant held the item (spec §3, CLAIMED). */
import type { Hex } from '@touchstone/verdict'
import type { LocalAccount } from 'viem'
import { assetRegistryAbi as abi } from '../../domain/registry-abi.ts'
import { chainUnavailable } from '../../lib/errors.ts'
import type { RpcClient } from '../rpc/client.ts'
import { readContract } from '../rpc/contract.ts'
import { writeFailure, type WriteFailure } from './failures.ts'
import { registryTypedData } from './typed-data.ts'

export type TappedClaim = Readonly<{ tokenId: bigint; claimant: Hex; tapCounter: number; deadline: bigint }>
/** `nonce` is the one that the claimant's ClaimConsent signs too. */
export type ClaimAttestation = Readonly<{ ok: true; attester: Hex; attesterSignature: Hex; nonce: number }>

type Options = Readonly<{ rpc: RpcClient; contract: Hex; chainId: number; attester: LocalAccount | undefined }>

/** Signs for every tap: call it only after the tap was verified and consumed. */
export function createClaimAttester({ rpc, contract, chainId, attester }: Options) {
  return async ({ tokenId, claimant, tapCounter, deadline }: TappedClaim): Promise<ClaimAttestation | WriteFailure> => {
    if (attester === undefined) return writeFailure('OPERATOR_KEY_MISSING')
    const [tagHash, [, , nonce]] = await Promise.all([
      readContract(rpc, { to: contract, abi, functionName: 'getTagByToken', args: [tokenId] }),
      readContract(rpc, { to: contract, abi, functionName: 'pendingTransfer', args: [tokenId] }),
    ]).catch((error: unknown) => {
      throw chainUnavailable(error)
    })
    const message = { tokenId, claimant, tagHash, tapCounter, nonce, deadline }
    const attesterSignature = await attester.signTypedData(registryTypedData({ chainId, contract }, 'Claim', message))
    return { ok: true, attester: attester.address, attesterSignature, nonce }
  }
}

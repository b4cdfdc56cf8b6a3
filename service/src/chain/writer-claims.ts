/** The attester's half of a claim: its word, after an accepted tap, that the claimant held the item (spec §3, CLAIMED). */
import type { Hex } from '@touchstone/verdict'
import { decodeFunctionResult, encodeFunctionData } from 'viem'
import type { LocalAccount } from 'viem'
import { assetRegistryAbi as abi } from './abi.ts'
import { writeFailure } from './write-calls-failures.ts'
import type { WriteFailure } from './write-calls-failures.ts'
import { registryTypedData } from './write-calls-typed-data.ts'
import type { WriterRpc } from './writer-rpc.ts'
import { chainUnavailable } from './writer-transaction.ts'

export type TappedClaim = Readonly<{ tokenId: bigint; claimant: Hex; tapCounter: number; deadline: bigint }>
/** `nonce` is the one that the claimant's ClaimConsent has to sign too. */
export type ClaimAttestation = Readonly<{ ok: true; attester: Hex; attesterSignature: Hex; nonce: number }>

type Options = Readonly<{ rpc: WriterRpc; contract: Hex; chainId: number; attester: LocalAccount | undefined }>

/** Signs for any tap it is given: call it only after the tap was verified and consumed. */
export function createClaimAttester({ rpc, contract, chainId, attester }: Options) {
  return async ({ tokenId, claimant, tapCounter, deadline }: TappedClaim): Promise<ClaimAttestation | WriteFailure> => {
    if (attester === undefined) return writeFailure('OPERATOR_KEY_MISSING')
    const [tagHash, nonce] = await Promise.all([tagOf(tokenId), nonceOf(tokenId)]).catch((error: unknown) => {
      throw chainUnavailable(error)
    })
    const message = { tokenId, claimant, tagHash, tapCounter, nonce, deadline }
    const attesterSignature = await attester.signTypedData(registryTypedData({ chainId, contract }, 'Claim', message))
    return { ok: true, attester: attester.address, attesterSignature, nonce }
  }

  async function tagOf(tokenId: bigint): Promise<Hex> {
    const data = await call(encodeFunctionData({ abi, functionName: 'getTagByToken', args: [tokenId] }))
    return decodeFunctionResult({ abi, functionName: 'getTagByToken', data })
  }

  async function nonceOf(tokenId: bigint): Promise<number> {
    const data = await call(encodeFunctionData({ abi, functionName: 'pendingTransfer', args: [tokenId] }))
    return decodeFunctionResult({ abi, functionName: 'pendingTransfer', data })[2]
  }

  async function call(data: Hex): Promise<Hex> {
    return (await rpc('eth_call', [{ to: contract, data }, 'latest'])) as Hex
  }
}

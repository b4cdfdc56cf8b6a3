/** The request that a stored transaction carries out, so that a repeat can be told what became of it although the asset has moved on. */
import type { Hex } from '@touchstone/verdict'
import { decodeFunctionData, parseTransaction } from 'viem'
import { assetRegistryAbi as abi } from './abi.ts'
import type { WriteRequest } from './write-calls.ts'

/** `null` for the kinds whose repeat needs no looking back: their request follows from the caller's input alone. */
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

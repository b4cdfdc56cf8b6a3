/** A lying provider: it answers with other owners, in reads of records and in the values of storage proofs. The rest is the truth. */
import { decodeFunctionData, encodeFunctionResult, decodeFunctionResult, toHex, type Hex } from 'viem'
import { assetRegistryAbi as abi } from '../../../service/src/domain/registry-abi.ts'

type Rewrite = (method: string, params: readonly unknown[], result: unknown) => unknown
type Proof = { readonly storageProof: readonly { readonly value: Hex }[] }

/** `count` is called for every lie. */
export function liar(contract: Hex, count: () => void): Rewrite {
  const forge = (word: bigint) => {
    if (word === 0n) return word
    count()
    return word ^ 1n // the lowest bit of the owner
  }
  return (method, params, result) => {
    if (method === 'eth_getProof') {
      const proof = result as Proof
      return {
        ...proof,
        storageProof: proof.storageProof.map((one) => ({ ...one, value: toHex(forge(BigInt(one.value))) })),
      }
    }
    const [call] = params as [{ to?: string; data?: Hex; input?: Hex }?]
    const data = call?.data ?? call?.input
    if (method !== 'eth_call' || call?.to?.toLowerCase() !== contract || data === undefined) return result
    const { functionName } = decodeFunctionData({ abi, data })
    if (functionName === 'getAssets') {
      const words = decodeFunctionResult({ abi, functionName, data: result as Hex })
      return encodeFunctionResult({ abi, functionName, result: words.map(forge) })
    }
    if (functionName === 'getAssetsWithMetadata') {
      const [words, hashes] = decodeFunctionResult({ abi, functionName, data: result as Hex })
      return encodeFunctionResult({ abi, functionName, result: [words.map(forge), hashes] })
    }
    return result
  }
}

/**
 * Whether an account signed a digest, as the contract's SignatureChecker judges it: an account without code by its key
 * (65 bytes, s in the lower half, EIP-2), one with code, an EIP-7702 delegate too, by ERC-1271 and by nothing else.
 */
import { attestationSigner, type Hex } from '@touchstone/verdict'
import { encodeFunctionData, parseAbi } from 'viem'
import { isRevert } from './transfer-pin.ts'
import type { PinnedRpc } from './transfer-pin.ts'

/** `digest` is what EIP-712 hashes the typed data to. */
export type SignedDigest = Readonly<{ signer: Hex; digest: Hex; signature: Hex }>

const wallet = parseAbi(['function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)'])
/** ERC-1271's answer for yes: the function's own selector, in a whole word. */
const yes = `0x1626ba7e${'0'.repeat(56)}`
/** A wallet that needs more could not be used in a transaction either. */
const mostGas = '0x4c4b40'

/** `at` reads the pinned block; `contract` is who asks a wallet when the transaction is carried out. */
export async function isSignedBy(at: PinnedRpc, contract: Hex, signed: SignedDigest): Promise<boolean> {
  const { signer, digest, signature } = signed
  const code = await at('eth_getCode', [signer])
  if (typeof code !== 'string' || !/^0x(?:[0-9a-f]{2})*$/.test(code))
    throw new Error('the answer to eth_getCode is not code')
  if (code === '0x') return attestationSigner(digest, signature) === signer.toLowerCase()
  const data = encodeFunctionData({ abi: wallet, functionName: 'isValidSignature', args: [digest, signature] })
  try {
    const answer = await at('eth_call', [{ from: contract, to: signer, data, gas: mostGas }])
    return typeof answer === 'string' && answer.slice(0, 66) === yes
  } catch (error) {
    if (isRevert(error)) return false
    throw error
  }
}

/**
 * GET {base_url}/api/asset/{tokenId}/proof: a verdict together with the storage proof it follows from (EIP-1186), taken at the
 * same block, because most nodes prove only near their head. `checkProofBundle` of `@touchstone/verdict` checks it offline.
 */
import {
  recordOfWord,
  recordSlot,
  verdictOf,
  verifyStorageProof,
  type EthProof,
  type Hex,
  type ProofBundle,
  type RpcHeader,
} from '@touchstone/verdict'
import { ServiceError } from '../errors.ts'

type Block = Readonly<{ number: bigint; hash: Hex; header: RpcHeader }>

/** Null when the token does not exist. It throws CHAIN_UNAVAILABLE when the proof cannot be had or does not hold. */
export type ProofBundles = (tokenId: bigint) => Promise<ProofBundle | null>

export function createProofBundles<B extends Block>({
  source,
  contract,
  chainId,
  codeHash,
  recordsSlot,
}: {
  readonly source: {
    readonly head: () => Promise<B>
    readonly proof: (slots: readonly Hex[], block: B) => Promise<EthProof | symbol>
  }
  readonly contract: Hex
  readonly chainId: number
  readonly codeHash: Hex
  readonly recordsSlot: bigint
}): ProofBundles {
  return async (tokenId) => {
    const block = await source.head()
    const slot = recordSlot(tokenId, recordsSlot)
    const proof = await source.proof([slot], block)
    if (typeof proof === 'symbol') throw unavailable('the block is no longer canonical')
    const checked = verifyStorageProof({
      header: block.header,
      blockHash: block.hash,
      contract,
      codeHash,
      proof,
      slots: [slot],
    })
    if (!checked.ok) throw unavailable(checked.reason)
    const record = recordOfWord(checked.values[0] ?? 0n)
    if (record === null) throw unavailable('the record cannot be decoded')
    const verdict = verdictOf({ record, tokenId, block, contract, chainId })
    if (verdict === null) return null
    const { accountProof, storageProof } = proof
    return {
      version: '1',
      verdict,
      proof: {
        header: headerOnly(block.header),
        accountProof,
        storageProof,
        recordsSlot: Number(recordsSlot),
        codeHash,
      },
    }
  }
}

/** What does not go into the block hash proves nothing and may be long. */
function headerOnly(header: RpcHeader): RpcHeader {
  const { transactions: _transactions, withdrawals: _withdrawals, uncles: _uncles, ...rest } = header
  return rest
}

function unavailable(reason: string): ServiceError {
  return new ServiceError('CHAIN_UNAVAILABLE', 'The chain could not be read.', { cause: new Error(reason) })
}

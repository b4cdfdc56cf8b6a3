/** Calls by which an owner's own wallet sets and clears reports, because `flag` takes no signature (spec §3, FLAGGED). */
import { assetFlags, type Hex } from '@touchstone/verdict'
import { encodeFunctionData } from 'viem/utils'
import { zeroHash } from '../../../domain/chain.ts'
import { assetRegistryAbi as abi } from '../../../domain/registry-abi.ts'
import type { OwnerReports } from '../../../pages/item/view.ts'

const { LOST, STOLEN, RECALL, STOLEN_CONFIRMED, INVESTIGATION } = assetFlags
/** The other reports are a guardian's: only the maker sets and clears them. */
const makerFlags = RECALL | STOLEN_CONFIRMED | INVESTIGATION

/** Returns the calls for a claimed item with these flags. */
export function ownerReportsOf(contract: Hex, tokenId: bigint, flags: number): OwnerReports {
  const call = (functionName: 'flag' | 'resolve', bits: number): Hex =>
    encodeFunctionData({ abi, functionName, args: [tokenId, bits, zeroHash] })
  const own = flags & (LOST | STOLEN)
  return {
    contract,
    lost: (flags & LOST) === 0 ? call('flag', LOST) : null,
    stolen: (flags & STOLEN) === 0 ? call('flag', STOLEN) : null,
    lift: own === 0 ? null : call('resolve', own),
    isMakers: (flags & makerFlags) !== 0,
  }
}

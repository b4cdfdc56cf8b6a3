/** Owner (spec §2.9): an address; nobody vouches for a name. */
import { checksumAddress, zeroAddress, type Hex } from '@touchstone/verdict'
import { createRecent } from './recent.ts'

type Owner = { readonly address: string; readonly displayName: null; readonly verifiedAt: null }

/** The capitals of an address cost a hash; the same owners come again and again. */
const known = createRecent<Hex, Owner>(10_000)

/** Null for the zero address, which nobody holds. */
export function ownerOf(address: Hex): Owner | null {
  if (address === zeroAddress) return null
  const owner = known.get(address) ?? { address: checksumAddress(address), displayName: null, verifiedAt: null }
  known.set(address, owner)
  return owner
}

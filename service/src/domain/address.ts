/** Ethereum addresses as people write them. */
import { checksumAddress, isAddress, type Hex } from '@touchstone/verdict'

/** Parses an address and returns it in lower case, or null. Capitals must be its checksum (EIP-55), which detects typing errors. */
export function parseAddress(text: string): Hex | null {
  if (!isAddress(text)) return null
  const lower = text.toLowerCase() as Hex
  return text === lower || text === checksumAddress(lower) ? lower : null
}

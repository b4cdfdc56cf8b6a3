/**
 * anvil's published accounts. Their keys are in every copy of anvil, so they may sign on the local chain and nowhere else.
 */
import { pbkdf2Sync } from 'node:crypto'
import type { Hex } from '@touchstone/verdict'
import { bytesToHex } from 'viem/utils'
import { type HDAccount, HDKey, hdKeyToAccount } from 'viem/accounts'

/** The phrase that anvil and other development nodes print at start (BIP-39; path m/44'/60'/0'/0/index). */
const publishedPhrase = 'test test test test test test test test test test test junk'

/** Lower-case addresses of the accounts 0 to 9. */
export const publishedAddresses: readonly Hex[] = [
  '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266',
  '0x70997970c51812dc3a010c7d01b50e0d17dc79c8',
  '0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc',
  '0x90f79bf6eb2c4f870365e785982e1f101e93b906',
  '0x15d34aaf54267db7d7c367839aaf71a00a2c6a65',
  '0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc',
  '0x976ea74026e726554db657fa54763abd0c3a0aa9',
  '0x14dc79964da2c08b23698b3d3cc7ca32193d9955',
  '0x23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f',
  '0xa0ee7a142d267c1f36714e4a8f75612f20a79720',
]

export function isPublishedAddress(address: string): boolean {
  return publishedAddresses.some((published) => published === address.toLowerCase())
}

/** The accounts that were asked for so far; deriving one takes milliseconds. */
const derived: HDAccount[] = []

/** Returns the first `count` accounts, able to sign. */
export function publishedAccounts(count: number): HDAccount[] {
  if (derived.length < count) {
    const seed = pbkdf2Sync(publishedPhrase, 'mnemonic', 2048, 64, 'sha512') // BIP-39, without passphrase
    const root = HDKey.fromMasterSeed(seed)
    for (let addressIndex = derived.length; addressIndex < count; addressIndex += 1)
      derived.push(hdKeyToAccount(root, { addressIndex }))
  }
  return derived.slice(0, count)
}

export function publishedKey(index: number): Hex {
  return bytesToHex(publishedAccounts(index + 1)[index]?.getHdKey().privateKey ?? new Uint8Array())
}

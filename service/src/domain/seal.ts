import { assetFlags, type AssetRecord } from '@touchstone/verdict'

/** Returns whether the tag reports an opened seal. TAMPER is no report: it leaves the state of the record alone (spec §3). */
export function isSealOpened({ flags }: Pick<AssetRecord, 'flags'>): boolean {
  return (flags & assetFlags.TAMPER) !== 0
}

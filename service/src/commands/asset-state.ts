/** The record of an asset in words. */
import { assetFlags, lifecycleStates, type AssetRecord } from '@touchstone/verdict'

/** State and flags, such as `FLAGGED (lost, stolen)`. */
export function stateText({ state, flags }: Pick<AssetRecord, 'state' | 'flags'>): string {
  const names = flagsText(flags)
  return names === '' ? lifecycleStates[state] : `${lifecycleStates[state]} (${names})`
}

/** The names of flag bits as `asset flag --reason` takes them. */
export function flagsText(flags: number): string {
  return Object.entries(assetFlags)
    .filter(([, bit]) => (flags & bit) !== 0)
    .map(([name]) => name.toLowerCase().replace('_', '-'))
    .join(', ')
}

/** The id of a transfer, `<tokenId>-<nonce>`: its offer raised the nonce of the asset to this one (spec §2.9, §3). */
import { parseTokenId } from '@touchstone/verdict'

export type TransferId = { readonly id: string; readonly tokenId: bigint; readonly nonce: number }

/** Parses an id and returns it without leading zeros, or null. */
export function parseTransferId(text: string): TransferId | null {
  const [, token = '', raised = ''] = /^(\d{1,78})-(\d{1,10})$/.exec(text) ?? []
  const tokenId = parseTokenId(token)
  const nonce = Number(raised)
  if (tokenId === null || raised === '' || nonce > 0xffffffff) return null
  return { id: `${tokenId}-${nonce}`, tokenId, nonce }
}

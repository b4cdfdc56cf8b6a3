/** What a caller sent to a tool, read once: nothing of it is ever echoed, so that no text of the caller stands in an answer. */
import { parseTokenId } from '@touchstone/verdict'

export type Arguments = { readonly tokenId: bigint; readonly includeUntrusted: boolean }
/** What to send instead. */
type Refusal = { readonly code: 'INVALID_TOKEN_ID' | 'INVALID_ARGUMENT'; readonly message: string }

/**
 * Reads `token_id`, and `include_untrusted` where the tool has it. `tokenId` and a safe integer are accepted too, because models write
 * them; any other key or type is refused.
 */
export function readArguments(sent: unknown, hasUntrusted: boolean): Arguments | Refusal {
  if (typeof sent !== 'object' || sent === null || Array.isArray(sent)) return refusals.shape
  const { token_id, tokenId = token_id, include_untrusted = true, ...others } = sent as Record<string, unknown>
  if (token_id !== undefined && tokenId !== token_id) return refusals.shape
  if (Object.keys(others).length > 0) return hasUntrusted ? refusals.verifyKeys : refusals.keys
  if ('include_untrusted' in sent && !hasUntrusted) return refusals.keys
  if (typeof include_untrusted !== 'boolean') return refusals.flag
  if (typeof tokenId !== 'string' && !Number.isSafeInteger(tokenId)) return refusals.shape
  const id = parseTokenId(String(tokenId))
  return id === null ? refusals.tokenId : { tokenId: id, includeUntrusted: include_untrusted }
}

const refusals = {
  shape: refusal('INVALID_ARGUMENT', 'Send one object with token_id as decimal text, such as {"token_id": "42"}.'),
  keys: refusal('INVALID_ARGUMENT', 'Send token_id and nothing else, such as {"token_id": "42"}.'),
  verifyKeys: refusal('INVALID_ARGUMENT', 'Send token_id, and include_untrusted if you like, and nothing else.'),
  flag: refusal('INVALID_ARGUMENT', 'Send include_untrusted as true or false, or leave it out.'),
  tokenId: refusal(
    'INVALID_TOKEN_ID',
    'Send token_id as a decimal integer from 0 to 2^256-1, in digits only, such as "42".',
  ),
} as const

function refusal(code: Refusal['code'], message: string): Refusal {
  return { code, message }
}

/**
 * The three read-only tools for agents (spec §4.3) as plain functions, without a language model; MCP and A2A call them. They never throw.
 * Answers are shared between callers and must not be changed. No answer repeats what the caller sent.
 */
import {
  lifecycleStates,
  parseTokenId,
  type Hex,
  type LifecycleState,
  type StateCode,
  type Untrusted,
  type Verdict,
} from '@touchstone/verdict'
import type { Histories, History, HistoryEvent } from '../../assets/history.ts'
import type { VerdictAnswer, Verdicts } from '../../assets/verdicts.ts'
import { chainName, chainRefOf } from '../../domain/chain.ts'
import { reportsOf } from '../../domain/registry-event.ts'
import { formatInstant } from '../../domain/text.ts'
import { runningRequestId } from '../../http/request.ts'
import type { ToolCode } from '../../lib/error-codes.ts'
import { databaseUnavailable, isChainUnavailable, isDatabaseUnavailable, reasonOf } from '../../lib/errors.ts'
import { isObject } from '../../lib/json.ts'
import type { Log } from '../../lib/log.ts'
import { memoize } from '../../lib/memoize.ts'
import type { FlagCheck, LifecycleEvent, LifecycleHistory } from './schemas.ts'

/** In the order of `tools/list`. */
export const toolNames = ['verify_asset', 'get_lifecycle_history', 'check_flagged'] as const
export type ToolName = (typeof toolNames)[number]

type ToolError = { readonly version: '1'; readonly error: { readonly code: ToolCode; readonly message: string } }

/** `structured` is the whole result; `untrusted` is the part of it that a supplier wrote. */
export type ToolAnswer =
  | {
      readonly ok: true
      readonly structured: Verdict | LifecycleHistory | FlagCheck
      readonly untrusted?: Untrusted | undefined
    }
  | { readonly ok: false; readonly error: ToolError }

/** A tool parses its arguments itself, so that it takes any value. */
export type Tools = Readonly<Record<ToolName, (args: unknown) => Promise<ToolAnswer>>>

type ToolsOptions = {
  readonly verdicts: Pick<Verdicts, 'answer' | 'ready'>
  readonly histories: Histories
  readonly contract: Hex
  readonly log: Log
}

/** Verdicts are shared objects, so that results are memoized by identity. */
const maxMemoized = { max: 2_000 }

export function createTools({ verdicts, histories, contract, log }: ToolsOptions): Tools {
  const withUntrusted = memoize(
    ({ verdict }: VerdictAnswer): ToolAnswer => ({ ok: true, structured: verdict, untrusted: verdict.untrusted }),
    maxMemoized,
  )
  const withoutUntrusted = memoize(omitUntrusted, maxMemoized)
  const flags = memoize(toFlagCheck, maxMemoized)

  /** Parses the arguments and turns errors into answers. The cause of an error is logged only. */
  function safely(tool: ToolName, run: (args: Arguments) => Promise<ToolAnswer>) {
    return async (sent: unknown): Promise<ToolAnswer> => {
      const args = parseArguments(sent, tool === 'verify_asset')
      if ('ok' in args) return args
      try {
        return await run(args)
      } catch (error) {
        const requestId = runningRequestId()
        if (isChainUnavailable(error)) {
          log.warn('tool failed', { tool, code: 'CHAIN_UNAVAILABLE', reason: reasonOf(error.cause), requestId })
          return failure('CHAIN_UNAVAILABLE', `${error.message} Ask again in a few seconds.`)
        }
        if (isDatabaseUnavailable(error)) {
          log.warn('tool failed', { tool, code: 'DATABASE_UNAVAILABLE', reason: reasonOf(error), requestId })
          return failure('DATABASE_UNAVAILABLE', databaseUnavailable(error).message)
        }
        log.error('tool failed', { tool, code: 'INTERNAL', reason: reasonOf(error), requestId })
        return failure('INTERNAL', 'The tool failed unexpectedly. Ask again later.')
      }
    }
  }

  /** Reads a verdict as the keyless read does: from memory without waiting if possible. */
  async function readVerdict(tokenId: bigint): Promise<VerdictAnswer | null> {
    return verdicts.ready(tokenId.toString()) ?? (await verdicts.answer(tokenId))
  }

  return {
    verify_asset: safely('verify_asset', async ({ tokenId, includeUntrusted }) => {
      const answer = await readVerdict(tokenId)
      if (answer === null) return noAsset
      return includeUntrusted ? withUntrusted(answer) : withoutUntrusted(answer)
    }),
    get_lifecycle_history: safely('get_lifecycle_history', async ({ tokenId }) => {
      const history = await histories(tokenId)
      if (history.available && history.events.length === 0) return noAsset
      return { ok: true, structured: toLifecycleHistory(history, tokenId, contract) }
    }),
    check_flagged: safely('check_flagged', async ({ tokenId }) => {
      const answer = await readVerdict(tokenId)
      return answer === null ? noAsset : flags(answer)
    }),
  }
}

type Arguments = { readonly tokenId: bigint; readonly includeUntrusted: boolean }

/**
 * Parses `token_id`, and `include_untrusted` where the tool has it. `tokenId` and a safe integer are accepted too, because models write
 * them; any other key or type is rejected.
 */
function parseArguments(sent: unknown, hasUntrusted: boolean): Arguments | ToolAnswer {
  if (!isObject(sent)) return rejections.shape
  const { token_id, tokenId = token_id, include_untrusted = true, ...others } = sent
  if (token_id !== undefined && tokenId !== token_id) return rejections.shape
  if (Object.keys(others).length > 0) return hasUntrusted ? rejections.verifyKeys : rejections.keys
  if ('include_untrusted' in sent && !hasUntrusted) return rejections.keys
  if (typeof include_untrusted !== 'boolean') return rejections.flag
  if (typeof tokenId !== 'string' && !Number.isSafeInteger(tokenId)) return rejections.shape
  const id = parseTokenId(String(tokenId))
  return id === null ? rejections.tokenId : { tokenId: id, includeUntrusted: include_untrusted }
}

function failure(code: ToolCode, message: string): ToolAnswer {
  return { ok: false, error: { version: '1', error: { code, message } } }
}

const rejections = {
  shape: failure('INVALID_ARGUMENT', 'Send one object with token_id as decimal text, such as {"token_id": "42"}.'),
  keys: failure('INVALID_ARGUMENT', 'Send token_id and nothing else, such as {"token_id": "42"}.'),
  verifyKeys: failure('INVALID_ARGUMENT', 'Send token_id, and include_untrusted if you like, and nothing else.'),
  flag: failure('INVALID_ARGUMENT', 'Send include_untrusted as true or false, or leave it out.'),
  tokenId: failure(
    'INVALID_TOKEN_ID',
    'Send token_id as a decimal integer from 0 to 2^256-1, in digits only, such as "42".',
  ),
} as const

const noAsset = failure(
  'ASSET_NOT_FOUND',
  'No asset has this token id. Check the digits; a token id that was never minted has no record.',
)

function omitUntrusted({ verdict }: VerdictAnswer): ToolAnswer {
  const { untrusted: _untrusted, ...structured } = verdict
  return { ok: true, structured }
}

/** Returns the members of a verdict that hold no free text. */
function toFlagCheck({ verdict, flags }: VerdictAnswer): ToolAnswer {
  const { version, token_id, flagged, state, state_code, authentic, chainRef } = verdict
  const { network, audit_status, production_ready } = verdict
  const status = { network, audit_status, production_ready }
  const reason = flagged ? (reportsOf(flags)[0] ?? 'FLAGGED') : null
  return {
    ok: true,
    structured: { version, token_id, flagged, reason, state, state_code, authentic, chainRef, ...status },
  }
}

/** `chainRef` names the block up to which the history is complete. An unavailable history has no list, not an empty one. */
function toLifecycleHistory(history: History, tokenId: bigint, contract: Hex): LifecycleHistory {
  const chainRef = chainRefOf(contract, tokenId, history.block)
  return {
    version: '1',
    token_id: chainRef.token_id,
    available: history.available,
    ...(history.available
      ? { event_count: history.events.length, events: history.events.map(toLifecycleEvent) }
      : { reason: history.reason, event_count: null, events: null }),
    chainRef,
    network: chainName,
    audit_status: 'unaudited',
    production_ready: false,
  }
}

function toLifecycleEvent(event: HistoryEvent): LifecycleEvent {
  const { fromState, toState, flags, actorCommitment, fromCommitment, toCommitment, metadataHash, tagHash } = event
  return {
    type: event.type,
    block_number: Number(event.blockNumber),
    block_hash: event.blockHash,
    log_index: event.logIndex,
    transaction_hash: event.transactionHash,
    timestamp: formatInstant(event.timestamp),
    ...(fromState !== undefined && { from_state: fromState, from_state_code: toStateCode(fromState) }),
    ...(toState !== undefined && { to_state: toState, to_state_code: toStateCode(toState) }),
    ...(flags !== undefined && { flags }),
    ...(actorCommitment !== undefined && { actor_commitment: actorCommitment }),
    ...(fromCommitment !== undefined && { from_commitment: fromCommitment }),
    ...(toCommitment !== undefined && { to_commitment: toCommitment }),
    ...(metadataHash !== undefined && { metadata: metadataHash }),
    ...(tagHash !== undefined && { tag_hash: tagHash }),
  }
}

function toStateCode(state: LifecycleState): StateCode {
  return lifecycleStates.indexOf(state) as StateCode
}

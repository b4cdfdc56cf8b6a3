/**
 * The three read-only tools for agents (spec §4.3), as plain functions without a language model: MCP and A2A call the same ones.
 * They never throw. What they give is shared between callers, who do not change it.
 */
import {
  checksumAddress,
  verdictChainId,
  type ChainRef,
  type Hex,
  type Untrusted,
  type Verdict,
} from '@touchstone/verdict'
import type { Histories } from '../asset/history.ts'
import type { Answer, Verdicts } from '../asset/verdicts.ts'
import { reasonOf, ServiceError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { FlagCheck, LifecycleHistory, ToolError } from './schemas/tools.ts'
import { readArguments, type Arguments } from './tools-arguments.ts'
import { remembering } from './remembering.ts'
import { historyOf } from './tools-history.ts'

/** In the order in which they are listed. */
export const toolNames = ['verify_asset', 'get_lifecycle_history', 'check_flagged'] as const
export type ToolName = (typeof toolNames)[number]

/** `structured` is the whole result; `untrusted` is its part that a supplier wrote, if there is one. */
export type ToolAnswer =
  | {
      readonly ok: true
      readonly structured: Verdict | LifecycleHistory | FlagCheck
      readonly untrusted?: Untrusted | undefined
    }
  | { readonly ok: false; readonly error: ToolError }

/** `args` is whatever the caller sent: the tool itself reads it. */
export type Tools = Readonly<Record<ToolName, (args: unknown) => Promise<ToolAnswer>>>

export function createTools({
  verdicts,
  histories,
  contract,
  log,
}: {
  readonly verdicts: Pick<Verdicts, 'answer' | 'ready'>
  readonly histories: Histories
  readonly contract: Hex
  readonly log: Log
}): Tools {
  const core = checksumAddress(contract)
  const whole = remembering(wholeOf)
  const withoutUntrusted = remembering(withoutUntrustedOf)
  const flags = remembering(flagsOf)

  /** A tool never throws: a fault of the closed list is an answer, and any other is INTERNAL, its reason for the log only. */
  function safely(tool: ToolName, run: (args: Arguments) => Promise<ToolAnswer>) {
    return async (sent: unknown): Promise<ToolAnswer> => {
      const args = readArguments(sent, tool === 'verify_asset')
      if ('code' in args) return failed(args.code, args.message)
      try {
        return await run(args)
      } catch (error) {
        if (error instanceof ServiceError && error.code === 'CHAIN_UNAVAILABLE') {
          log.warn('tool failed', { tool, code: error.code, reason: reasonOf(error.cause) })
          return failed(error.code, `${error.message} Ask again in a few seconds.`)
        }
        log.error('tool failed', { tool, code: 'INTERNAL', reason: reasonOf(error) })
        return failed('INTERNAL', 'The tool failed unexpectedly. Ask again later.')
      }
    }
  }

  /** The same door as the keyless read: without waiting when the verdict is at hand. */
  async function answerTo(tokenId: bigint): Promise<Answer | null> {
    return verdicts.ready(tokenId.toString()) ?? (await verdicts.answer(tokenId))
  }

  return {
    verify_asset: safely('verify_asset', async ({ tokenId, includeUntrusted }) => {
      const answer = await answerTo(tokenId)
      if (answer === null) return noAsset
      return includeUntrusted ? whole(answer) : withoutUntrusted(answer)
    }),
    get_lifecycle_history: safely('get_lifecycle_history', async ({ tokenId }) => {
      const history = await histories(tokenId)
      if (history.available && history.events.length === 0) return noAsset
      return { ok: true, structured: historyOf(history, refOf(tokenId, history.block)) }
    }),
    check_flagged: safely('check_flagged', async ({ tokenId }) => {
      const answer = await answerTo(tokenId)
      return answer === null ? noAsset : flags(answer)
    }),
  }

  function refOf(tokenId: bigint, block: { readonly number: bigint; readonly hash: Hex }): ChainRef {
    return {
      chain_id: verdictChainId,
      contract: core,
      token_id: tokenId.toString(),
      block_number: Number(block.number),
      block_hash: block.hash,
    }
  }
}

function wholeOf({ verdict }: Answer): ToolAnswer {
  return { ok: true, structured: verdict, untrusted: verdict.untrusted }
}

function withoutUntrustedOf({ verdict }: Answer): ToolAnswer {
  const { untrusted: _untrusted, ...structured } = verdict
  return { ok: true, structured }
}

/** The part of a verdict that holds no free text. */
function flagsOf({ verdict }: Answer): ToolAnswer {
  const { version, token_id, flagged, state, state_code, authentic, chainRef } = verdict
  const { network, audit_status, production_ready } = verdict
  const status = { network, audit_status, production_ready }
  return { ok: true, structured: { version, token_id, flagged, state, state_code, authentic, chainRef, ...status } }
}

const noAsset = failed(
  'ASSET_NOT_FOUND',
  'No asset has this token id. Check the digits; a token id that was never minted has no record.',
)

function failed(code: ToolError['error']['code'], message: string): ToolAnswer {
  return { ok: false, error: { version: '1', error: { code, message } } }
}

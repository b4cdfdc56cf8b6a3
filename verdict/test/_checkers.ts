/** The two checks of a verdict, against the recorded chain. */
import { prove, type ProveOptions } from '../src/check/prove.ts'
import { recheck } from '../src/check/recheck.ts'
import { contract, recorded, recordedChain, type RpcAnswers } from './_recorded.ts'

export const checkers = { recheck, prove }
export const rpcUrl = 'https://rpc.example/v2/secret-key'
/** Time of the recorded block. */
export const time = '2026-11-23T12:00:47Z'

/** Runs a check against the recorded chain with some answers changed. */
export const against = (
  name: keyof typeof checkers,
  answers: RpcAnswers = {},
  options: Partial<ProveOptions> = {},
  of: unknown = recorded.verdict,
) => checkers[name](of, { rpcUrl, contract, fetch: recordedChain(answers).fetch, ...options })

/** The findings of the checks. */
import { withDeadline } from '../../lib/async/deadline.ts'
import { formatError } from '../session/output.ts'

export type Area =
  | 'settings'
  | 'machine'
  | 'folder'
  | 'ports'
  | 'database'
  | 'redis'
  | 'chain'
  | 'keys'
  | 'roles'
  | 'gateway'
  | 'passes'
  | 'clock'
  | 'traces'

/**
 * A check finds this in its own area, unless another is named. `wrong`: the service does not start or does not do its work. `remedy` is one
 * sentence.
 */
export type CheckFinding = Readonly<{ state: 'ok' | 'warning' | 'wrong'; what: string; remedy?: string; area?: Area }>

export type CheckFindings = CheckFinding | readonly CheckFinding[]

export type Finding = CheckFinding & Readonly<{ area: Area }>

export const ok = (what: string): CheckFinding => ({ state: 'ok', what })
export const warning = (what: string, remedy: string): CheckFinding => ({ state: 'warning', what, remedy })
export const wrong = (what: string, remedy: string): CheckFinding => ({ state: 'wrong', what, remedy })

const checkMs = 15_000

/** Runs a check. One that fails or does not end is itself a finding. */
export async function findingsOf(
  area: Area,
  remedy: string,
  check: () => Promise<CheckFindings>,
): Promise<readonly Finding[]> {
  const late = () => wrong(`The check took longer than ${checkMs / 1_000} s.`, remedy)
  const failed = (error: unknown) => wrong(formatError(error), remedy)
  const found = await withDeadline<CheckFindings, CheckFindings>(check(), checkMs, { onTimeout: late }).catch(failed)
  return [found].flat().map((each) => ({ area, ...each }))
}

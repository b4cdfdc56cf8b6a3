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

/** `wrong`: the service does not start or does not do its work. `remedy` is one sentence. */
export type Finding = Readonly<{
  area: Area
  state: 'ok' | 'warning' | 'wrong'
  what: string
  remedy?: string
}>

export const ok = (area: Area, what: string): Finding => ({ area, state: 'ok', what })
export const warning = (area: Area, what: string, remedy: string): Finding => ({ area, state: 'warning', what, remedy })
export const wrong = (area: Area, what: string, remedy: string): Finding => ({ area, state: 'wrong', what, remedy })

const checkMs = 15_000

/** Runs a check. One that fails or does not end is itself a finding. */
export async function findingsOf(
  area: Area,
  remedy: string,
  check: () => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  const late = () => [wrong(area, `The check took longer than ${checkMs / 1_000} s.`, remedy)]
  return withDeadline(check(), checkMs, { onTimeout: late }).catch((error: unknown) => [
    wrong(area, formatError(error), remedy),
  ])
}

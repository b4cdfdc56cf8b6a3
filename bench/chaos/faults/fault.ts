/** The shape of a fault. */
import type { Fleet, InstanceWishes } from '../fleet.ts'
import type { Record } from '../record.ts'

export type Fault = {
  readonly about: string
  /** Before the instances are started; what it makes is on `made` and goes when the row is over. */
  readonly prepare?: (fleet: Fleet, made: AsyncDisposableStack) => Promise<void>
  /** Settings of the instances for this fault; they are restarted with them before it begins. */
  readonly wishes?: (fleet: Fleet) => { readonly [instance: string]: InstanceWishes }
  /** It needs a fleet on a Citus cluster; left out: on one PostgreSQL. */
  readonly onCluster?: true
  /** Instances that may end by themselves meanwhile, to be started again. */
  readonly mayEnd?: readonly string[]
  /** Breaks it, waits `ms` where it lasts, and mends what does not mend itself. It may give a remark for the table. */
  readonly strike: (fleet: Fleet, ms: number, record: Record) => Promise<string | void>
}

/** This machine cannot cause the fault: one sentence why. */
export class NotRun extends Error {}

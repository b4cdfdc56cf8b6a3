/** Memory of a process as Linux counts it. */
import { readFileSync } from 'node:fs'

/** Resident now, in MB; 0 for a process that is not there. */
export function residentMegabytes(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0) / 1_000
  } catch {
    return 0
  }
}

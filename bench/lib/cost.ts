/** The cost of a process, with all that it started, and how busy the machine is besides: from Linux's /proc. */
import { readFileSync, readdirSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

const ticksPerSecond = 100 // sysconf(_SC_CLK_TCK), the same on every Linux that Node runs on

export type Cost = { readonly cpuSeconds: number; readonly peakMegabytes: number }

/** User and system time of a process with all its descendants until now. Also the highest resident memory of each of them, added up. */
export function costOf(root: number): Cost {
  return sumOf(treeOf(root))
}

/** The same of one process without its descendants. */
export function ownCostOf(pid: number): Cost {
  return sumOf([processOf(pid) ?? []].flat())
}

function sumOf(tree: readonly Process[]): Cost {
  return {
    cpuSeconds: sum(tree.map(({ ticks }) => ticks)) / ticksPerSecond,
    peakMegabytes: sum(tree.map(({ pid }) => peakKilobytes(pid))) / 1000,
  }
}

/** User and system time of processes until now. Those that cannot be seen from here, as on another machine, count nothing. */
export function cpuSecondsOf(pids: readonly number[]): number {
  return sum(pids.map((pid) => processOf(pid)?.ticks ?? 0)) / ticksPerSecond
}

type Process = { readonly pid: number; readonly parent: number; readonly ticks: number }

function treeOf(root: number): Process[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => processOf(Number(name)) ?? [])
  const members = new Set([root])
  for (let before = 0; before !== members.size;) {
    before = members.size
    for (const { pid, parent } of all) if (members.has(parent)) members.add(pid)
  }
  return all.filter(({ pid }) => members.has(pid))
}

/** `ticks` holds the time of children that have ended and were waited for. */
function processOf(pid: number): Process | null {
  try {
    // man 5 proc_pid_stat: the name in parentheses may hold spaces; behind it, field 3 is the first.
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const at = (field: number) => Number(fields[field - 3])
    return { pid, parent: at(4), ticks: at(14) + at(15) + at(16) + at(17) }
  } catch {
    return null // it has ended meanwhile
  }
}

function peakKilobytes(pid: number): number {
  return kilobytes(pid, 'VmHWM')
}

/** Resident memory of a process now, in MB; 0 for a process that does not run. */
export function residentMegabytes(pid: number): number {
  return kilobytes(pid, 'VmRSS') / 1_000
}

function kilobytes(pid: number, line: 'VmHWM' | 'VmRSS'): number {
  try {
    return Number(new RegExp(`^${line}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0)
  } catch {
    return 0
  }
}

/**
 * Prints a warning if other processes keep the machine busy before the benchmark begins. Shares of a core and of its caches are not steady
 * then.
 */
export async function warnWhenBusy(): Promise<void> {
  const before = machineTicks()
  await delay(1_000)
  const cores = (machineTicks() - before) / ticksPerSecond
  if (cores > 0.2)
    console.log(`others keep ${cores.toFixed(1)} cores busy: only the ratios mean something, and those not much`)
}

function machineTicks(): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = readFileSync('/proc/stat', 'latin1')
    .slice(5, 200)
    .split('\n')[0]!
    .trim()
    .split(/\s+/)
    .map(Number)
  return user + nice + system + irq + softirq + steal
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

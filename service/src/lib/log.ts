/**
 * Structured logs: one JSON object a line, one child per part.
 * Keys, cryptograms, API keys, payment headers, owner addresses and URLs with credentials are never fields.
 */
import type { Writable } from 'node:stream'
import { bigintAsText } from './json.ts'

const levels = { debug: 10, info: 20, warn: 30, error: 40 } as const

export type LogLevel = keyof typeof levels
export type Fields = Readonly<Record<string, string | number | bigint | boolean | null | undefined>>
export type Log = Readonly<Record<LogLevel, (event: string, fields?: Fields) => void>> & {
  child: (part: string) => Log
}

/** Makes a log that hands finished lines (without line break) to `write`. Lines below `level` are dropped; `always` stands in each. */
export function createLog(
  write: (line: string) => void,
  level: LogLevel | 'silent' = 'info',
  part = 'service',
  always: Fields = {},
): Log {
  const threshold = level === 'silent' ? Infinity : levels[level]
  const at = (name: LogLevel) => (event: string, fields?: Fields) => {
    if (levels[name] < threshold) return
    write(
      JSON.stringify({ time: new Date().toISOString(), level: name, part, event, ...always, ...fields }, bigintAsText),
    )
  }
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (name) => createLog(write, level, name, always),
  }
}

/** Characters that may wait for a reader which takes none, such as a paused collector of logs. */
const mostWaiting = 8 * 1024 * 1024

/**
 * Makes the function that writes the lines of a log to a stream. A line that cannot be written, such as on a full disk, is dropped. So are
 * further lines while too many wait to be read, because they would fill the memory. A later line has their number.
 */
export function lineWriter(stream: Pick<Writable, 'write' | 'writableLength'>): (line: string) => void {
  let dropped = 0
  let reporting = false
  const report = (line: string) => {
    const count = dropped
    reporting = true
    stream.write(`${line}\n`, (error) => {
      reporting = false
      if (!error) dropped -= count
    })
  }
  return (line) => {
    if (stream.writableLength > mostWaiting) {
      dropped += 1
      return
    }
    if (dropped > 0 && !reporting)
      createLog(report, 'warn', 'log').warn('lines of the log were dropped', { lines: dropped })
    stream.write(`${line}\n`, (error) => void (error && (dropped += 1)))
  }
}

/** Returns the same log, which calls `onError` for each line of level error, of its children too. */
export function withErrorCount(log: Log, onError: () => void): Log {
  return {
    ...log,
    error: (event, fields) => {
      onError()
      log.error(event, fields)
    },
    child: (name) => withErrorCount(log.child(name), onError),
  }
}

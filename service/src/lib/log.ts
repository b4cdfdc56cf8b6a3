/**
 * Structured logs: one JSON object a line, one child per part.
 * Keys, cryptograms, API keys, payment headers, owner addresses and URLs with credentials are never fields.
 */
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
    write(JSON.stringify({ time: new Date().toISOString(), level: name, part, event, ...always, ...fields }, asText))
  }
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (name) => createLog(write, level, name, always),
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

function asText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value
}

/**
 * PGlite, the embedded database, in a folder. A full disk is DATABASE_UNAVAILABLE. Where it ended the engine itself, which happens when the
 * log cannot grow, the next statement after there is space again starts another one.
 */
import { existsSync } from 'node:fs'
import { rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { PGlite, types } from '@electric-sql/pglite'
import { pg_trgm } from '@electric-sql/pglite/contrib/pg_trgm'
import { createQueue } from '../lib/async/concurrency.ts'
import { withSpan } from '../lib/async/span.ts'
import { databaseUnavailable, ServiceError } from '../lib/errors.ts'
import { closeTree, makeFolder } from '../lib/private-folder.ts'
import { isOfServer, serverFailure, sqlState } from './errors.ts'
import { localLocks } from './locks.ts'
import { checkChannel } from './postgres/session.ts'

/** `memory://` keeps nothing. Throws DATABASE_UNAVAILABLE when the disk is full, else what PGlite throws. */
export async function openPglite(dataDir: string) {
  let { engine, ended } = await start(dataDir)
  const listeners = new Set<() => Promise<void>>()
  const inTurn = createQueue()

  /** Runs statements and transactions one after another, as the engine does, so that none waits in one that has ended. */
  const use = <T>(work: () => Promise<T>): Promise<T> =>
    inTurn(async () => {
      const fault = ended()
      if (fault !== undefined) await restart(fault)
      return work()
    })

  async function restart(fault: ServiceError): Promise<void> {
    if (await isFull(dataDir)) throw fault
    const next = await start(dataDir).catch((error: unknown) => Promise.reject(databaseUnavailable(error)))
    ;({ engine, ended } = next)
    for (const listen of listeners) await listen()
  }

  const on = (runner: () => Pick<PGlite, 'query'>) => {
    return async <Row>(text: string, values: readonly unknown[] = []) =>
      (await runner().query<Row>(text, [...values])).rows
  }
  const query = on(() => engine)
  return {
    dialect: 'pglite' as const,
    query: <Row>(text: string, values?: readonly unknown[]) => use(() => query<Row>(text, values)),
    exec: (script: string) => use(async () => void (await engine.exec(script))),
    transaction: <T>(work: (sql: { query: typeof query }) => Promise<T>) =>
      use(() => engine.transaction((tx) => work({ query: on(() => tx as unknown as PGlite) })) as Promise<T>),
    listen: (channel: string, onNotice: () => void) => {
      checkChannel(channel)
      let stop: (() => Promise<void>) | undefined
      const listen = async () => {
        // The engine calls within the work of the sender; what follows is not a part of it.
        stop = await engine.listen(channel, () => withSpan(undefined, onNotice))
        onNotice()
      }
      listeners.add(listen)
      const listening = use(listen).catch(() => {}) // fails only when the database is closed, or cannot be used
      return {
        async [Symbol.asyncDispose]() {
          listeners.delete(listen)
          await listening
          await use(async () => stop?.()).catch(() => {})
        },
      }
    },
    hold: localLocks(),
    close: () => inTurn(async () => void (ended() === undefined && (await engine.close()))),
  }
}

/** PostgreSQL's default of 128 MB stays resident from the start. Files in the cache of the system are read nearly as fast. */
const sharedBuffers = '16MB'

/**
 * Keeps V8 from compiling the module of `load` a second time, with optimisation. That takes 600 MB for a while. Statements by a key take
 * the same time without it, sums over whole tables take 1.7 times as long. Later modules and the compile cache see V8's own flags.
 */
async function compiledOnce<T>(load: () => Promise<T>): Promise<T> {
  const set = (prefix: string) => {
    for (const flag of ['wasm-tier-up', 'wasm-dynamic-tiering']) setFlagsFromString(`--${prefix}${flag}`)
  }
  set('no-')
  try {
    return await load()
  } finally {
    set('')
  }
}

/**
 * Frees the 290 MB of the second PostgreSQL, in which `initdb` ran for a new folder. The service needs memory of its own next. They are
 * freed by the second collection, after the finalizers of the first. Only a new context has the function that the flag exposes.
 */
async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  setFlagsFromString('--no-expose-gc')
  collect()
  await setImmediate()
  collect()
}

/** `ended` returns the error that ended the engine. Another message would never return from it, and block the process. */
async function start(dataDir: string): Promise<{ engine: PGlite; ended: () => ServiceError | undefined }> {
  const asText = (text: string) => text
  let fault: ServiceError | undefined
  const mark = join(dataDir, 'PG_VERSION')
  const isNew = !isMemory(dataDir) && !existsSync(mark)
  try {
    if (!isMemory(dataDir)) await makeFolder(dataDir)
    const engine = await compiledOnce(() =>
      PGlite.create(dataDir, {
        extensions: { pg_trgm },
        startParams: [...PGlite.defaultStartParams, '-c', `shared_buffers=${sharedBuffers}`],
        parsers: { [types.INT8]: BigInt, [types.TIMESTAMPTZ]: asText, [types.NUMERIC]: asText },
      }),
    )
    if (isNew) await collectGarbage()
    await closeTree(dataDir) // it sets the modes of its first files itself, whatever the umask
    const send = engine.execProtocolStream.bind(engine)
    engine.execProtocolStream = async (message, options) => {
      if (fault !== undefined) throw fault
      return send(message, options).catch((error: unknown) => {
        const full = sqlState(error) === '53100' ? diskFull(dataDir, error) : undefined
        if (isOfEngine(error)) fault = full ?? databaseUnavailable(error)
        throw fault ?? full ?? (isOfServer(error) ? serverFailure(error) : error)
      })
    }
    return { engine, ended: () => fault }
  } catch (error) {
    // PGlite makes other files after it. The next start would not make them.
    if (isNew) await rm(mark, { force: true }).catch(() => {})
    throw (await isFull(dataDir, error)) ? diskFull(dataDir, error) : error
  }
}

/** PostgreSQL's own process would end with this error; WebAssembly throws a RuntimeError. */
function isOfEngine(error: unknown): boolean {
  const { severity, name } = (error ?? {}) as { readonly severity?: unknown; readonly name?: unknown }
  return severity === 'PANIC' || severity === 'FATAL' || name === 'RuntimeError'
}

const isMemory = (dataDir: string) => dataDir.includes('://')

/** The log grows by files of this size. */
const logFileBytes = 16 * 1024 * 1024
/** ENOSPC as WASI numbers it. */
const wasiNoSpace = 51

/** At its start PGlite mostly hides why a file could not be written, so that the free space decides. */
async function isFull(dataDir: string, error?: unknown): Promise<boolean> {
  if (isMemory(dataDir)) return false
  const { errno, code } = (error ?? {}) as { readonly errno?: unknown; readonly code?: unknown }
  if (errno === wasiNoSpace || code === 'ENOSPC') return true
  const disk = await statfs(dataDir).catch(() => null)
  return disk !== null && disk.bavail * disk.bsize < logFileBytes
}

function diskFull(dataDir: string, cause: unknown): ServiceError {
  const message = `The disk that holds the database in ${dataDir} is full. Free space on it and try again; nothing that was stored is lost.`
  return new ServiceError('DATABASE_UNAVAILABLE', message, { cause })
}

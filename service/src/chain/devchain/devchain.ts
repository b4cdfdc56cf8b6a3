/**
 * The chain of the demonstration: a real anvil with chain id 84532 on the loopback address. Its blocks are saved, so that a read
 * pinned to a block returns the identical answer after a restart (spec §2.2).
 */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Hex } from '@touchstone/verdict'
import { createQueue } from '../../lib/async/concurrency.ts'
import { sleep } from '../../lib/async/sleep.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import { makeFolder } from '../../lib/private-folder.ts'
import { type Anvil, type AnvilOptions, endLeftover, startAnvil, StateRefused } from './anvil.ts'
import { startPoolRepair } from './pool.ts'
import { stateFile, type StateFile } from './state.ts'
import { localRpc } from './transact.ts'
import { createRpcClient, type RpcClient } from '../rpc/client.ts'

type LocalChainOptions = Readonly<{ dataDir: string; port?: number; log: Log; blockTimeMs?: number }>

export type LocalChain = Awaited<ReturnType<typeof startLocalChain>>

/** Starts the chain kept in `dataDir`, or a new one. Every failure is an Error of one sentence that says what to do. */
export async function startLocalChain({ dataDir, port = 0, log, blockTimeMs }: LocalChainOptions) {
  const folder = join(dataDir, 'chain')
  await makeFolder(folder)
  await endLeftover(folder)
  const began = performance.now()
  const anvil = await startWithState({ folder, port, blockTimeMs }, log)
  const rpc = localRpc(anvil.url)
  try {
    await rpc('anvil_setLoggingEnabled', [false])
    await catchUpClock(rpc)
  } catch (error) {
    await anvil.stop()
    throw new Error('The local chain started but does not answer; start again.', { cause: error })
  }
  const saver = startSaving(anvil.url, stateFile(folder), log)
  const stopPoolRepair = startPoolRepair(createRpcClient({ url: anvil.url }), log)

  let closing: Promise<void> | undefined
  void anvil.exited.then(() => {
    if (closing === undefined) log.error('local chain ended by itself; restart the service', { port: anvil.port })
  })
  /** Saves, then ends anvil. */
  async function close(): Promise<void> {
    await stopPoolRepair()
    await saver.stop()
    await anvil.stop()
  }
  log.info('local chain ready', { port: anvil.port, milliseconds: Math.round(performance.now() - began) })
  return { url: anvil.url, port: anvil.port, save: saver.save, close: (): Promise<void> => (closing ??= close()) }
}

/** Starts with the newest state that anvil accepts. A folder without a whole state is never started empty: its blocks would be lost. */
async function startWithState(options: AnvilOptions, log: Log): Promise<Anvil> {
  const { states, damaged } = await stateFile(options.folder).load()
  if (states.length === 0 && damaged === 0) return startAnvil(options)
  if (damaged > 0) log.warn('saved state of the local chain is damaged', { files: damaged })
  const statePath = join(options.folder, 'loading.json')
  try {
    for (const { name, json } of states) {
      await writeFile(statePath, json)
      try {
        const anvil = await startAnvil({ ...options, statePath })
        log.info('local chain restored', { file: name, bytes: json.length })
        return anvil
      } catch (error) {
        if (!(error instanceof StateRefused)) throw error
        log.warn('saved state of the local chain is refused', { file: name })
      }
    }
  } finally {
    await rm(statePath, { force: true })
  }
  throw new Error(
    `The local chain saved in ${options.folder} is damaged: restore that folder from a backup, or move the whole data folder away to start anew.`,
  )
}

/** Moves anvil's clock, which begins at the machine's time, to the saved head where that is ahead. */
async function catchUpClock(rpc: RpcClient): Promise<void> {
  const { timestamp } = await headOf(rpc)
  const ahead = Number(timestamp) - Math.floor(Date.now() / 1000)
  if (ahead > 0) await rpc('evm_increaseTime', [ahead + 1])
}

/**
 * anvil answers nothing while it dumps, and the states of 256 old blocks may be hundreds of megabytes. A dump that takes longer is the
 * last with these states: what was read at an old block can then be read again until the next restart only.
 */
const historyMs = 700
/** Hex digits; a dump of a smaller state takes long only when the machine is busy. */
const smallState = 4_000_000

/** The longest pause between two looks at a chain that does not move, in milliseconds. */
const idleMs = 1_000

/** Saves the state soon after each new head. Its pauses are longer where a save takes long, and while there is no new head. */
function startSaving(url: string, file: StateFile, log: Log) {
  const rpc = createRpcClient({ url })
  const dump = createRpcClient({ url, timeoutMs: 20_000, maxBytes: 512 * 1024 * 1024 }) // 256 states are many megabytes
  const stopped = new AbortController()
  let savedHead: Hex | undefined
  let pauseMs = 200
  let withHistory = true
  const inTurn = createQueue()

  /** Writes the whole state to disk now; balances and code set without a block too. */
  async function save(): Promise<void> {
    if (!(await inTurn(saveNow))) throw new Error('blocks came faster than the state of the local chain could be read')
  }

  /** Returns false when a block was mined during every attempt. */
  async function saveNow(): Promise<boolean> {
    const began = performance.now()
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const before = await headOf(rpc)
      const asked = performance.now()
      const state = (await dump('anvil_dumpState', [withHistory])) as Hex
      const after = await headOf(rpc)
      if (withHistory && performance.now() - asked > historyMs && state.length > smallState) {
        withHistory = false
        log.warn('local chain has grown: from now on old blocks are kept without their states', { bytes: state.length })
      }
      // A block mined meanwhile may be in the accounts and not among the blocks.
      if (before.hash !== after.hash) continue
      await file.save(Buffer.from(state.slice(2), 'hex'))
      savedHead = after.hash
      pauseMs = Math.max(200, 4 * (performance.now() - began))
      return true
    }
    return false
  }

  async function run(): Promise<void> {
    let silent = false
    let waitMs = pauseMs
    while (!stopped.signal.aborted) {
      try {
        const isSaved = (await headOf(rpc)).hash === savedHead
        if (!isSaved) await inTurn(saveNow)
        waitMs = Math.max(pauseMs, isSaved ? Math.min(idleMs, 2 * waitMs) : 0)
        silent = false
      } catch (error) {
        if (!silent && !stopped.signal.aborted) log.warn('local chain cannot be saved', { reason: reasonOf(error) })
        silent = true
      }
      await sleep(waitMs, { signal: stopped.signal, ref: false })
    }
  }

  const running = run()
  async function stop(): Promise<void> {
    stopped.abort()
    await running
    await save().catch((error: unknown) => log.warn('local chain cannot be saved', { reason: reasonOf(error) }))
  }
  return { save, stop }
}

async function headOf(rpc: RpcClient): Promise<{ hash: Hex; timestamp: Hex }> {
  return (await rpc('eth_getBlockByNumber', ['latest', false])) as { hash: Hex; timestamp: Hex }
}

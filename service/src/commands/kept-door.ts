/**
 * The door of a service to its data folder. Several services and workers may share a folder when their database is elsewhere: one of
 * them has the door, and when it is gone another one takes it, so that commands are carried out as long as any of them lives.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../config.ts'
import { holderOf } from './control-client.ts'
import { openControl, type Door, type RunCommand } from './control.ts'
import { holdFolder } from './store-command.ts'

/** How often one without the door looks whether it has become free. */
const lookMs = 2_000

export async function keepDoor({ dataDir, store }: Pick<Config, 'dataDir' | 'store'>): Promise<Door> {
  if (store.databaseUrl === null) return holdFolder(dataDir)
  const over = new AbortController()
  let door: Door | undefined
  let run: RunCommand | undefined

  async function take(): Promise<void> {
    if ((await holderOf(dataDir)) !== null) return
    const opened = await openControl(dataDir)
    if (!opened.ok) return
    door = opened.door
    if (run !== undefined) door.serve(run)
  }

  async function keepLooking(): Promise<void> {
    while (door === undefined && !over.signal.aborted) {
      await delay(lookMs, undefined, { ref: false, signal: over.signal }).catch(() => {})
      // What stands in the way may go away: another look costs little.
      if (!over.signal.aborted) await take().catch(() => {})
    }
  }

  await take()
  const looking = keepLooking()
  const stop = async (withinMs?: number) => {
    over.abort()
    await looking
    await door?.stop(withinMs)
  }
  const close = async () => {
    await stop()
    await door?.close()
  }
  const serve = (next: RunCommand) => {
    run = next
    door?.serve(next)
  }
  return { serve, stop, close, [Symbol.asyncDispose]: close }
}

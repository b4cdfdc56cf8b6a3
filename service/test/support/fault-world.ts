/** A world whose service reaches the chain through a provider that fails when a test says so. */
import { type FaultRpc, startFaultRpc } from './fault-rpc.ts'
import { startWorld } from './world.ts'

export type FaultWorld = Awaited<ReturnType<typeof startFaultWorld>>

/** `env` overrules the settings. */
export async function startFaultWorld(env: Record<string, string> = {}) {
  const started = Promise.withResolvers<FaultRpc>()
  const rpcUrl = async (target: string) => {
    started.resolve(await startFaultRpc({ target }))
    return (await started.promise).url
  }
  const world = await startWorld({ env, rpcUrl })
  const faults = await started.promise
  return {
    ...world,
    faults,
    async end() {
      await world.end()
      await faults.close()
    },
  }
}

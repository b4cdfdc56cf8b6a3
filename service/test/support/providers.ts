/** For tests: an anvil of a suite and the providers in front of it, which can misbehave. What a test opens ends with the test. */
import { after, afterEach, before } from 'node:test'
import type { ChainSourceOptions } from '../../src/chain/rpc/source.ts'
import { type FaultRpc, startFaultRpc } from './fault-rpc.ts'
import { lazily } from './opened.ts'
import { sourceOver, startTestAnvil, type TestAnvil } from './rpc-anvil.ts'

/** Called where a suite begins; anvil stores the numbers first. After each test every provider is honest again. */
export function useProviders(count: number, stored: readonly number[] = []) {
  let anvil: TestAnvil
  let providers: readonly FaultRpc[] = []
  const opened: { close: () => Promise<void> }[] = []

  before(async () => {
    anvil = await startTestAnvil()
    for (const value of stored) await anvil.store(value)
    const start = () => startFaultRpc({ target: anvil.url })
    providers = await Promise.all(Array.from({ length: count }, start))
  })
  afterEach(async () => {
    for (const provider of providers) provider.set('none')
    await closeAll(opened.splice(0))
  })
  after(() => closeAll([...providers, anvil]))

  return {
    anvil: lazily(() => anvil),
    first: lazily(() => providers[0] as FaultRpc),
    second: lazily(() => providers[1] as FaultRpc),
    third: lazily(() => providers[2] as FaultRpc),
    urls: () => providers.map(({ url }) => url),
    sourceOver: (urls: readonly string[], options: Partial<ChainSourceOptions> = {}) => {
      const made = sourceOver(urls, options)
      opened.push(made.source)
      return made
    },
  }
}

async function closeAll(opened: readonly { close: () => Promise<void> }[]): Promise<void> {
  await Promise.all(opened.map((one) => one.close()))
}

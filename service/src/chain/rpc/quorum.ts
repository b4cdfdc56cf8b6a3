/**
 * The head that several providers agree on (spec §2.5, trust `quorum`): the lowest of their heads, which each of them must
 * have under the same hash. All are asked. Two that contradict each other are a failure: there is no majority vote.
 */
import { msUntil } from '../../lib/async/deadline.ts'
import type { Block } from './block.ts'
import { outcomeOf, ReadFailure } from './failover.ts'
import type { RpcError } from './answer.ts'
import type { Provider } from './provider.ts'

export type QuorumHeadOptions = Readonly<{
  providers: readonly Provider[]
  needed: number
  /** Reads the provider's own head, checked and fresh. */
  headOf: (provider: Provider) => Promise<Block>
  blockAt: (provider: Provider, number: bigint) => Promise<Block>
  isBehind: (provider: Provider) => boolean
  deadline: number
  onDisagreement: () => void
}>

/** Rejects with `ReadFailure`. */
export async function quorumHead(options: QuorumHeadOptions): Promise<Block> {
  const { needed, headOf, blockAt, isBehind, deadline, onDisagreement } = options
  const asked = options.providers.filter((provider) => provider.breaker.admit())
  const heads = new Map(await answersOf({ providers: asked, needed, attempt: headOf, deadline }))
  for (const provider of heads.keys()) if (isBehind(provider)) heads.delete(provider)
  const [lowest] = [...heads.values()].toSorted((a, b) => Number(a.number - b.number))
  if (lowest === undefined || heads.size < needed) throw new ReadFailure('no quorum: too many providers are behind')

  const blocks = await answersOf({
    providers: [...heads.keys()],
    needed,
    attempt: async (provider) => {
      const own = heads.get(provider)
      return own?.number === lowest.number ? own : blockAt(provider, lowest.number)
    },
    deadline,
  })
  if (blocks.some(([, block]) => block.hash !== lowest.hash)) {
    onDisagreement()
    throw new ReadFailure(`providers disagree about block ${lowest.number}`)
  }
  return lowest
}

type AnswersOptions<T> = Pick<QuorumHeadOptions, 'providers' | 'needed' | 'deadline'> &
  Readonly<{ attempt: (provider: Provider) => Promise<T> }>

/** Returns the answers of all providers; once `needed` have answered, those that are slower than usual are left out. */
function answersOf<T>(options: AnswersOptions<T>): Promise<readonly (readonly [Provider, T])[]> {
  const { providers, needed, attempt, deadline } = options
  return new Promise((resolve, reject) => {
    const answers: [Provider, T][] = []
    const failures: [Provider, RpcError][] = []
    const deadlineTimer = setTimeout(end, msUntil(deadline))
    let graceTimer: NodeJS.Timeout | undefined
    for (const provider of providers) void ask(provider)
    if (providers.length < needed) end()

    async function ask(provider: Provider): Promise<void> {
      const outcome = await outcomeOf(attempt(provider))
      if ('answer' in outcome) answers.push([provider, outcome.answer])
      else failures.push([provider, outcome.failure])
      if (answers.length + failures.length === providers.length) return end()
      const slowest = Math.max(...providers.map(({ latency }) => latency.p95()))
      if (answers.length >= needed) graceTimer ??= setTimeout(end, Math.max(50, slowest))
    }

    function end(): void {
      clearTimeout(deadlineTimer)
      clearTimeout(graceTimer)
      if (answers.length >= needed) return resolve([...answers])
      const reasons = failures.map(([provider, failure]) => `${provider.label} ${failure.message}`)
      const causes = failures.map(([, failure]) => failure)
      reject(new ReadFailure(['no quorum', ...reasons].join('; '), causes))
    }
  })
}

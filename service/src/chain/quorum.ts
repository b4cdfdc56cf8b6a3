/**
 * The head that several providers agree on (spec §2.5, trust `quorum`): the lowest of their heads, which each of them must
 * have under the same hash. All are asked; two that contradict each other are a failure, never outvoted.
 */
import { ReadFailure, outcomeOf } from './failover.ts'
import type { Outcome } from './failover.ts'
import type { Provider } from './provider.ts'
import type { RpcFailure } from './rpc-answer.ts'
import type { Block } from './source.ts'

export type QuorumHeadOptions = Readonly<{
  providers: readonly Provider[]
  needed: number
  /** The provider's own head, checked and fresh. */
  headOf: (provider: Provider) => Promise<Block>
  blockAt: (provider: Provider, number: bigint) => Promise<Block>
  isBehind: (provider: Provider) => boolean
  deadline: number
  onDisagreement: () => void
}>

/** Rejects with `ReadFailure`. */
export async function quorumHead(options: QuorumHeadOptions): Promise<Block> {
  const { providers, needed, headOf, blockAt, isBehind, deadline, onDisagreement } = options
  const asked = providers.filter((provider) => provider.breaker.admit())
  const heads = (await answersOf({ providers: asked, needed, attempt: headOf, deadline })).filter(
    ({ provider }) => !isBehind(provider),
  )
  const lowest = heads.toSorted((a, b) => Number(a.answer.number - b.answer.number))[0]?.answer
  if (lowest === undefined || heads.length < needed) throw new ReadFailure('no quorum: too many providers are behind')

  const headBy = new Map(heads.map(({ provider, answer }) => [provider, answer]))
  const blocks = await answersOf({
    providers: [...headBy.keys()],
    needed,
    attempt: async (provider) => {
      const own = headBy.get(provider)
      return own?.number === lowest.number ? own : blockAt(provider, lowest.number)
    },
    deadline,
  })
  if (blocks.some(({ answer }) => answer.hash !== lowest.hash)) {
    onDisagreement()
    throw new ReadFailure(`providers disagree about block ${lowest.number}`)
  }
  return lowest
}

type Answer<T> = Readonly<{ provider: Provider; answer: T }>

/** What all providers answer; once `needed` have, those that are slower than usual are not waited for. */
function answersOf<T>(options: {
  providers: readonly Provider[]
  needed: number
  attempt: (provider: Provider) => Promise<T>
  deadline: number
}): Promise<readonly Answer<T>[]> {
  const { providers, needed, attempt, deadline } = options
  return new Promise((resolve, reject) => {
    const answers: Answer<T>[] = []
    const failures: { provider: Provider; failure: RpcFailure }[] = []
    const deadlineTimer = setTimeout(end, Math.max(0, deadline - performance.now()))
    let graceTimer: NodeJS.Timeout | undefined
    for (const provider of providers) {
      void outcomeOf(attempt(provider)).then((outcome) => ended(provider, outcome))
    }
    if (providers.length < needed) end()

    function ended(provider: Provider, outcome: Outcome<T>): void {
      if ('answer' in outcome) answers.push({ provider, answer: outcome.answer })
      else failures.push({ provider, failure: outcome.failure })
      if (answers.length + failures.length === providers.length) return end()
      if (answers.length >= needed) graceTimer ??= setTimeout(end, Math.max(50, slowest()))
    }

    function slowest(): number {
      return Math.max(...providers.map((provider) => provider.latency.p95()))
    }

    function end(): void {
      clearTimeout(deadlineTimer)
      clearTimeout(graceTimer)
      if (answers.length >= needed) return resolve([...answers])
      const reasons = failures.map(({ provider, failure }) => `${provider.label} ${failure.message}`)
      reject(
        new ReadFailure(
          ['no quorum', ...reasons].join('; '),
          failures.map(({ failure }) => failure),
        ),
      )
    }
  })
}

/**
 * What one connection may ask (spec §5, §6): the key comes with `connection_init`, and every operation passes the same checks and
 * draws on the same budget as over HTTP.
 */
import type { ExecutionArgs, ExecutionResult, GraphQLError } from 'graphql'
import type { ServerOptions } from 'graphql-ws'
import type { RateLimiter } from '../http/rate-limit.ts'
import type { ApiKey } from '../store/api-keys.ts'
import type { GraphqlContext } from './context.ts'
import { graphqlError } from './error-codes.ts'
import { executeWithin } from './http-operation.ts'
import type { ContextOf } from './loaders.ts'
import type { PrepareOperation } from './prepare-operation.ts'
import type { ShowError } from './shown-error.ts'
import type { SubscriptionEvent } from './subscription-events.ts'
import { runSubscription, type Results } from './subscription-run.ts'

export type SocketOperations = {
  readonly prepare: PrepareOperation
  readonly contextOf: ContextOf
  readonly showError: ShowError
  /** By API key. Left out: no limit. */
  readonly limiter?: RateLimiter | undefined
  /** Subscriptions and unanswered requests of one connection. */
  readonly maxOperations?: number
  readonly timeoutMs?: number
}

/** The closing codes of graphql-ws (its PROTOCOL.md); clients come again after all but 4401. */
export type Refusal = readonly [code: number, reason: string]

/** `admit` says whose connection it is, or why it has to go. */
export function createOperations(
  { prepare, contextOf, showError, limiter, maxOperations = 50, timeoutMs = 30_000 }: SocketOperations,
  requestIds: () => string,
) {
  return ({
    admit,
    close,
  }: {
    readonly admit: (authorization: string | undefined) => Promise<ApiKey | Refusal>
    readonly close: (...refusal: Refusal) => void
  }): ServerOptions => {
    let key: ApiKey | undefined
    let running = 0
    const context = (requestId: string, listing = false) => contextOf(key as ApiKey, requestId, listing) // acknowledged: there is a key

    async function overBudget(): Promise<GraphQLError | null> {
      const budget = await limiter?.take(key?.id ?? '')
      return budget?.allowed === false
        ? graphqlError('RATE_LIMITED', `Too many requests. Send the next one in ${budget.resetSeconds} s.`)
        : null
    }

    function shown({ errors, ...result }: ExecutionResult, { requestId }: GraphqlContext): ExecutionResult {
      return errors === undefined ? result : { ...result, errors: errors.map((error) => showError(error, requestId)) }
    }

    async function runOnce(args: ExecutionArgs): Promise<ExecutionResult> {
      return shown(await executeWithin(args, timeoutMs), args.contextValue as GraphqlContext)
    }

    async function runForEvents(args: ExecutionArgs): Promise<Results | ExecutionResult> {
      const results = await runSubscription<SubscriptionEvent>(args, (event) =>
        runOnce({ ...args, rootValue: event, contextValue: { ...context(requestIds()), loaders: event.loaders } }),
      )
      return 'next' in results ? results : shown(results, args.contextValue as GraphqlContext)
    }

    return {
      async onConnect({ connectionParams }) {
        const given = connectionParams?.['authorization'] ?? connectionParams?.['Authorization']
        const admitted = await admit(typeof given === 'string' ? given : undefined)
        if (isRefusal(admitted)) {
          close(...admitted)
          return false
        }
        key = admitted
        return true
      },
      async onSubscribe(_connection, _id, { query, operationName, variables }) {
        if (running >= maxOperations)
          return [graphqlError('RATE_LIMITED', `A connection may have ${maxOperations} operations at a time.`)]
        running += 1 // its place is taken before the budget is asked for, which may take a moment
        const refused = await overBudget()
        const prepared =
          refused === null ? prepare({ query, operationName, variables }) : ({ ok: false, errors: [refused] } as const)
        if (prepared.ok) return { ...prepared.args, contextValue: context(requestIds(), prepared.listing) }
        running -= 1
        return prepared.errors
      },
      execute: runOnce,
      subscribe: runForEvents,
      onComplete: () => void (running -= 1), // of each that was let in, whoever ended it
      onError: (_connection, _id, _payload, errors) => {
        const requestId = requestIds()
        return errors.map((error) => showError(error, requestId).toJSON())
      },
    }
  }
}

function isRefusal(admitted: ApiKey | Refusal): admitted is Refusal {
  return Array.isArray(admitted)
}

/**
 * Clients reach a fleet as behind a load balancer. The other instance is asked when one refuses or does not answer. Every answer is held
 * against the OpenAPI description: a status, header or body that it does not foresee, and anything that leaks, is a broken promise.
 */
import { readOpenApi } from '../../../service/src/discovery/openapi.ts'
import { readContract } from '../../../service/test/support/contract.ts'
import type { Reply } from '../../../service/test/support/http.ts'
import type { Instance, Urls } from '../services/instance.ts'
import type { Kind, Outcome, Record } from '../record.ts'

export type Wanted = {
  readonly kind: Kind
  /** The operation of the OpenAPI description. */
  readonly operation: string
  readonly host: keyof Urls
  readonly path: string
  readonly method?: 'GET' | 'POST'
  readonly headers?: { readonly [name: string]: string }
  readonly body?: string
  /** Reads the answer: a result, or a reason to ask again. Throws a sentence when the answer is wrong. */
  readonly judge: (reply: Reply) => 'ok' | 'refused'
}
export type Clients = ReturnType<typeof createClients>

/** Refusals that say: come again. Anything else would blame a client that did nothing wrong. */
const comeAgain: ReadonlySet<number> = new Set([429, 500, 502, 503])
/** A sale and a mutation wait for blocks. */
const deadlineMs: { readonly [Name in Kind]: number } = {
  read: 15_000,
  tap: 15_000,
  list: 15_000,
  register: 45_000,
  pay: 32_000,
}

export function createClients(instances: readonly Instance[], record: Record) {
  const { operations, faultsOf } = readContract(readOpenApi())
  let turn = 0

  /** One attempt at one instance; null: no answer. */
  async function attempt(instance: Instance, wanted: Wanted): Promise<{ outcome: Outcome; reply: Reply | null }> {
    const began = performance.now()
    const reply = await send(instance.urls()[wanted.host] + wanted.path, wanted).catch(() => null)
    const outcome = reply === null ? 'gone' : judged(wanted, reply)
    const at = performance.now()
    const { kind } = wanted
    // GraphQL answers with 200 what another host answers with 500.
    const isInternal = outcome === 'refused' && reply?.text.includes('"code":"INTERNAL"')
    const status = isInternal === true ? 500 : (reply?.status ?? 0)
    record.add({ kind, instance: instance.name, at, took: at - began, outcome, status })
    return { outcome, reply }
  }

  function judged(wanted: Wanted, reply: Reply): Outcome {
    const operation = operations.find(({ operationId }) => operationId === wanted.operation)
    if (operation === undefined) throw new Error(`The OpenAPI description has no ${wanted.operation}.`)
    for (const fault of faultsOf(operation, reply))
      record.broke(`${wanted.operation} is not as described, ${reply.status}`, fault)
    if (reply.status !== 200) {
      if (!comeAgain.has(reply.status))
        record.broke(`${wanted.operation} blames the client, ${reply.status}`, reply.text.slice(0, 200))
      return 'refused'
    }
    try {
      return wanted.judge(reply)
    } catch (error) {
      record.broke(`${wanted.operation} is wrong`, error instanceof Error ? error.message : String(error))
      return 'refused'
    }
  }

  return {
    /** Each instance is asked once, in turns which one first; the last answer, null when none answered. */
    async ask(wanted: Wanted): Promise<{ readonly ok: boolean; readonly reply: Reply | null }> {
      const first = (turn += 1)
      let last: Reply | null = null
      for (let tries = 0; tries < instances.length; tries += 1) {
        const instance = instances[(first + tries) % instances.length]
        if (instance === undefined) break
        const { outcome, reply } = await attempt(instance, wanted)
        last = reply ?? last
        if (outcome !== 'ok') continue
        record.asked[tries === 0 ? 'atOnce' : 'elsewhere'] += 1
        return { ok: true, reply }
      }
      record.asked.not += 1
      return { ok: false, reply: last }
    },
    attempt,
  }
}

async function send(url: string, { kind, method = 'GET', headers = {}, body }: Wanted): Promise<Reply> {
  const signal = AbortSignal.timeout(deadlineMs[kind])
  const response = await fetch(url, { method, headers, signal, ...(body !== undefined && { body }) })
  return { status: response.status, headers: Object.fromEntries(response.headers), text: await response.text() }
}

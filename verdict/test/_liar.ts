/** An RPC that changes what the real chain answers. */
import type { Fetch } from '../src/index.ts'

export type RpcRequest = { method: string; params: unknown[]; id: number }
export type RpcAnswer = { result?: unknown; error?: { code: number; message: string } }

/** A `fetch` whose answers pass through `change`; what it returns takes the place of `result` and `error`. */
export function changedAnswers(change: (request: RpcRequest, answer: RpcAnswer) => RpcAnswer): Fetch {
  return async (input, init) => {
    const request = JSON.parse(init?.body as string) as RpcRequest
    const answer = (await (await fetch(input, init)).json()) as RpcAnswer
    return Response.json({
      jsonrpc: '2.0',
      id: request.id,
      ...change(request, { result: answer.result, error: answer.error } as RpcAnswer),
    })
  }
}

/** A `fetch` that changes the result of one method. */
export function changedResult(method: string, change: (result: unknown) => unknown): Fetch {
  return changedAnswers((request, answer) => (request.method === method ? { result: change(answer.result) } : answer))
}

/** A `fetch` that refuses what `when` picks out. */
export function refusing(
  when: (request: RpcRequest) => boolean,
  error = { code: -32602, message: 'invalid argument 1' },
): Fetch {
  return changedAnswers((request, answer) => (when(request) ? { error } : answer))
}

/** Operations sent to the servers of `bench:graphql` in interleaved rounds, with what each request cost. */
import { costOf } from '../lib/cost.ts'
import type { Operation } from './operations.ts'
import { applyLoad } from '../lib/load.ts'
import { median } from '../lib/processes.ts'

export type Server = { readonly port: number; readonly pid: number; readonly key: string | null }

/**
 * `rate` is in requests a second, `cpu` in µs of the server's process for each request. `p50` and `p99` are in ms. All are medians of the
 * rounds.
 */
export type Measured = { readonly rate: number; readonly cpu: number; readonly p50: number; readonly p99: number }

type Asked = { readonly server: Server; readonly operation: Operation }

const rounds = 3

/** The results in the order of what is asked. It throws where an answer is not 200. */
export async function inRounds<const All extends readonly Asked[]>(
  all: All,
  { connections, seconds }: { connections: number; seconds: number },
): Promise<{ [Index in keyof All]: Measured }> {
  for (const asked of all) {
    // Errors are answers of status 200 too.
    if (asked.server.key !== null) await answerOf(asked.server, asked.operation)
    await load(asked, connections, 0.5)
  }
  const results = all.map(() => [] as Measured[])
  for (let round = 0; round < rounds; round += 1)
    for (const [index, asked] of all.entries()) results[index]?.push(await load(asked, connections, seconds))
  return results.map(middleOf) as { [Index in keyof All]: Measured }
}

function middleOf(runs: readonly Measured[]): Measured {
  const middle = (what: keyof Measured) => median(runs.map((run) => run[what]))
  return { rate: middle('rate'), cpu: middle('cpu'), p50: middle('p50'), p99: middle('p99') }
}

/** The data of one answer; any error but TOO_COMPLEX is thrown. */
export async function answerOf(
  { port, key }: Server,
  { name, query, variables }: Operation,
): Promise<Record<string, unknown>> {
  const response = await fetch(`http://127.0.0.1:${port}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ query, variables: variables[0]?.graphql }),
  })
  const { data, errors = [] } = (await response.json()) as {
    data: Record<string, unknown>
    errors?: { message: string; extensions: { code: string } }[]
  }
  const wrong = errors.find(({ extensions }) => extensions.code !== 'TOO_COMPLEX')
  if (wrong !== undefined) throw new Error(`${name}: ${wrong.message}`)
  return data
}

async function load(
  { server: { port, pid, key }, operation }: Asked,
  connections: number,
  seconds: number,
): Promise<Measured> {
  const { name, query, barePath, variables } = operation
  const paths = [key === null ? barePath : '/graphql']
  const bodies = variables.map((one) =>
    JSON.stringify(key === null ? { variables: one.bare } : { query, variables: one.graphql }),
  )
  const headers = key === null ? [] : [`Authorization: Bearer ${key}`]
  const before = costOf(pid).cpuSeconds
  const { requests, statuses, ...times } = await applyLoad({ port, paths, bodies, headers, connections, seconds })
  if (Object.keys(statuses).join() !== '200')
    throw new Error(`${name}: unexpected statuses ${JSON.stringify(statuses)}`)
  return { ...times, cpu: ((costOf(pid).cpuSeconds - before) / requests) * 1e6 }
}

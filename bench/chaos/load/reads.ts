/** Keyless reads and pages of products: every verdict is compared with the chain at the block that it names. */
import type { Verdict } from '@touchstone/verdict'
import type { FleetChain } from '../services/chain.ts'
import type { Reply } from '../../../service/test/support/http.ts'
import type { Wanted } from './clients.ts'

/** Compares what a verdict says; null when it is right, else what is wrong. */
export type CheckVerdict = (verdict: Verdict) => string | null

export function createCheckVerdict(chain: Pick<FleetChain, 'truth'>): CheckVerdict {
  return ({ untrusted: _ours, ...said }) => {
    const { token_id, block_number, block_hash } = said.chainRef
    const truth = chain.truth(BigInt(token_id), { number: BigInt(block_number), hash: block_hash })
    if (truth === undefined || truth === null)
      return `token ${token_id} at a block that never was: ${block_number} ${block_hash}`
    const [ours, theirs] = [JSON.stringify(truth), JSON.stringify(said)]
    return ours === theirs
      ? null
      : `token ${token_id} is not what the chain said at its block: ${theirs} instead of ${ours}`
  }
}

export function readOf(tokenId: bigint, check: CheckVerdict): Wanted {
  return {
    kind: 'read',
    operation: 'readAsset',
    host: 'verification',
    path: `/api/asset/${tokenId}`,
    judge({ text }) {
      const verdict = JSON.parse(text) as Verdict
      const wrong =
        verdict.token_id === String(tokenId) ? check(verdict) : `asked for ${tokenId}, answered ${verdict.token_id}`
      if (wrong !== null) throw new Error(wrong)
      return 'ok'
    },
  }
}

type GraphqlAnswer<Data> = {
  readonly data?: Data | null
  readonly errors?: readonly { readonly extensions?: { readonly code?: string } }[]
}

/** Errors that GraphQL may give to a right request while something is broken. */
const comeAgain: ReadonlySet<string> = new Set(['INTERNAL', 'CHAIN_UNAVAILABLE', 'TOO_COMPLEX', 'RATE_LIMITED'])

/** The data, or null for a refusal; an error that blames the client is thrown. */
export function graphqlData<Data>({ text }: Reply): Data | null {
  const { data, errors = [] } = JSON.parse(text) as GraphqlAnswer<Data>
  const wrong = errors.find(({ extensions }) => !comeAgain.has(extensions?.code ?? ''))
  if (wrong !== undefined) throw new Error(`GraphQL blames the client: ${JSON.stringify(wrong).slice(0, 200)}`)
  return errors.length > 0 || data === undefined ? null : data
}

export const graphqlRequest = (key: string, query: string, variables: object = {}) =>
  ({
    operation: 'runGraphql',
    host: 'graphql',
    path: '/graphql',
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ query, variables }),
  }) as const

export function listOf(key: string, first: number): Wanted {
  type Page = { products: { edges: readonly { node: { id: string } }[] } }
  return {
    kind: 'list',
    ...graphqlRequest(
      key,
      'query ($first: Int!) { products(first: $first) { edges { node { id name state verified } } } }',
      { first },
    ),
    judge(reply) {
      const data = graphqlData<Page>(reply)
      if (data === null) return 'refused'
      if (data.products.edges.length !== first)
        throw new Error(`a page of ${first} products has ${data.products.edges.length}`)
      return 'ok'
    },
  }
}

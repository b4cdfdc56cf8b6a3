/** The answers of a real chain about one token, recorded with anvil 1.7.1: a table stands in for the chain. */
import { readFileSync } from 'node:fs'
import type { EthProof, Fetch, Hex, RpcHeader, Verdict } from '../src/index.ts'

type Recorded = Readonly<{ header: RpcHeader; proof: EthProof; verdict: Verdict; metadata: string }>

const file = new URL('../test-data/storage-proof.json', import.meta.url)

/** Token 6, activated, at block 9. The proof is for its record, its metadata hash, its tag, and the record of token 5000. */
export const recorded = JSON.parse(readFileSync(file, 'utf8')) as Recorded

export const { block_hash: blockHash, contract } = recorded.verdict.chainRef
export const codeHash: Hex = '0xd5c88dd6f37ded425ba40a7032df0461c1c9f5e396baa891083c02c84ff42c0f'

export type RpcAnswer = Readonly<{ result?: unknown; error?: unknown }>
export type RpcAnswers = Readonly<Record<string, (params: readonly unknown[]) => RpcAnswer>>

const [word = 0n, metadataHash = 0n] = recorded.proof.storageProof.map(({ value }) => BigInt(value))

/** The five words of `getAsset`, cut out of the storage word: owner, timestamp, state, flags, reserved. */
const asset = [160n, 64n, 8n, 8n, 16n].reduce(
  ({ rest, text }, width) => ({
    rest: rest >> width,
    text: text + BigInt.asUintN(Number(width), rest).toString(16).padStart(64, '0'),
  }),
  { rest: word, text: '0x' },
).text

/** The block after the recorded one, 12 seconds later; its hash is made up. */
export const latest: RpcHeader = {
  ...recorded.header,
  number: '0xa',
  hash: `0x${'aa'.repeat(32)}`,
  timestamp: `0x${(Number(recorded.header['timestamp']) + 12).toString(16)}`,
}

/** The answers of the recorded chain, by method. */
export const honest = {
  eth_chainId: () => ({ result: '0x14a34' }),
  eth_getBlockByHash: ([hash]) => ({ result: hash === blockHash ? recorded.header : null }),
  eth_getBlockByNumber: ([at]) => ({ result: at === 'latest' ? latest : at === '0x9' ? recorded.header : null }),
  eth_getProof: ([, slots]) => ({
    result: {
      ...recorded.proof,
      storageProof: recorded.proof.storageProof.filter(({ key }) => (slots as readonly Hex[]).includes(key)),
    },
  }),
  eth_call: ([call]) => {
    const { to, data } = call as { to?: Hex; data: Hex }
    if (to === undefined) return { result: `0x${'9'.padStart(64, '0')}` }
    return { result: data.startsWith('0xeac8f5b8') ? asset : `0x${metadataHash.toString(16)}` }
  },
} satisfies RpcAnswers

/** A `fetch` that answers as the recorded chain did, but for the methods of `answers`. Requests are kept in the order sent. */
export function recordedChain(answers: RpcAnswers = {}) {
  const table: RpcAnswers = { ...honest, ...answers }
  const requests: { method: string; params: readonly unknown[] }[] = []
  const fetch: Fetch = async (_, init) => {
    const { method, params, id } = JSON.parse(init?.body as string) as (typeof requests)[number] & { id: number }
    requests.push({ method, params })
    return Response.json({ jsonrpc: '2.0', id, ...table[method]?.(params) })
  }
  return { fetch, requests }
}

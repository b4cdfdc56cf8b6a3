/** The direct contract read over any JSON-RPC endpoint (spec §2.5): the call, and a strict client to send it with. */
import { isRefusal, VerdictError } from './lib/errors.ts'
import { fetchJson, type FetchOptions } from './lib/fetch-json.ts'
import { type Hex, lowerCaseHex, word } from './lib/hex.ts'
import { isObject, textOf } from './lib/json.ts'
import { parseUrl } from './lib/url.ts'

/** Sends one JSON-RPC request and returns its `result`, with hex in lower case. */
export type Rpc = (method: string, params: readonly unknown[]) => Promise<unknown>

/** Calldata of `getAsset(uint256)`: selector 0xeac8f5b8 and the id as one word (spec §2.5). */
export function getAssetCall(tokenId: bigint): Hex {
  return `0xeac8f5b8${word(tokenId)}`
}

/** Calldata of `metadataHash(uint256)`: selector 0x219cc8bc and the id as one word. */
export function metadataHashCall(tokenId: bigint): Hex {
  return `0x219cc8bc${word(tokenId)}`
}

/** Init code that returns the number of its block: number mstore(0) return(0, 32). */
const numberCode: Hex = '0x4360005260206000f3'

/**
 * Returns how `eth_call` names a block: by its hash (EIP-1898) where the endpoint answers from that block, else by its number. Some endpoints
 * ignore hashes and answer from another block. Under a number it must be checked that the number still has this hash.
 */
export async function blockParameter(rpc: Rpc, block: { number: bigint; hash: Hex }): Promise<object | Hex> {
  const byHash = { blockHash: block.hash, requireCanonical: true }
  const number = await rpc('eth_call', [{ data: numberCode }, byHash]).catch((error: unknown) => {
    if (!isRefusal(error)) throw error
  })
  return number === `0x${word(block.number)}` ? byHash : `0x${block.number.toString(16)}`
}

/**
 * A JSON-RPC 2.0 client over `fetch`. An answer counts only with status 200, `jsonrpc` "2.0", the id of its request and
 * either a result or an error; the deadline covers the body, which may have 8 MiB. Nothing is retried. Throws
 * `VerdictError`: `RPC_REFUSED` when the endpoint answers with a JSON-RPC error (`cause` is `{ code, message }`),
 * `RPC_UNAVAILABLE` for everything else, an invalid URL or one with a user name or password included.
 */
export function createRpc({ url, ...options }: { url: string } & FetchOptions): Rpc {
  const target = parseUrl(url)
  let lastId = 0
  return async (method, params) => {
    if (target === null || !/^https?:$/.test(target.protocol) || target.username !== '' || target.password !== '') {
      throw new VerdictError('RPC_UNAVAILABLE', 'The RPC URL is not an http(s) URL without user name and password.')
    }
    lastId += 1
    const id = lastId
    const init: RequestInit = {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
      redirect: 'error',
    }
    const answer = await fetchJson(target.href, init, options).catch((cause: unknown) => {
      throw new VerdictError('RPC_UNAVAILABLE', `The RPC did not answer ${method}.`, { cause })
    })
    return lowerCaseHex(resultOf(answer, id, method))
  }
}

function resultOf({ status, body }: { status: number; body: unknown }, id: number, method: string): unknown {
  if (isObject(body) && body['jsonrpc'] === '2.0' && body['id'] === id) {
    const { result, error } = body
    if (isObject(error) && result === undefined) {
      const cause = { code: error['code'], message: textOf(error['message']) }
      const code = Number.isInteger(cause.code) ? ` (code ${String(cause.code)})` : ''
      throw new VerdictError('RPC_REFUSED', `The RPC refused ${method}${code}.`, { cause })
    }
    if (status === 200 && result !== undefined && (error === undefined || error === null)) return result
  }
  throw new VerdictError(
    'RPC_UNAVAILABLE',
    `The RPC answered ${method} with something that is not its result (HTTP ${status}).`,
  )
}

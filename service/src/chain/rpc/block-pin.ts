/**
 * Reads pinned to one block (spec §2.2 `block_hash`; EIP-1898). Some providers reject hash objects. One that ignores them would answer
 * from another block, so each provider is probed per method. Another server may come to answer behind its URL. Each `eth_call` by hash
 * therefore goes out with a second one that returns the number of its block. The probes are repeated beside the chain id.
 */
import { randomBytes } from 'node:crypto'
import type { Hex } from '@touchstone/verdict'
import { isObject } from '../../lib/json.ts'
import { isWord, quantity, RpcError } from './answer.ts'
import type { RpcAttempt, RpcCall } from './client.ts'
import type { Block } from './block.ts'

type PinnedMethod = 'eth_call' | 'eth_getProof'
/** `number`: by number, with a check before and after that this number still has the pinned hash. */
type PinEncoding = 'hash' | 'number'

export type Pin = Readonly<ReturnType<typeof createPin>>

/** Init code that returns the number of its block: number mstore(0) return(0, 32). */
const numberCode: Hex = '0x4360005260206000f3'
const numberAt = (at: unknown): RpcCall => ['eth_call', [{ data: numberCode }, at]]

/** `onLost` is called when a provider no longer takes block hashes as it did. What it answered lately may be of other blocks. */
export function createPin(contract: Hex, onLost: () => void) {
  const encodings = new Map<PinnedMethod, Promise<PinEncoding>>()
  /** The methods that took hash objects at the last probe. */
  const byHash = new Set<PinnedMethod>()
  let rejectsUnknownBlocks: Promise<boolean> | undefined

  const probes: Record<PinnedMethod, (at: unknown) => RpcCall> = {
    eth_call: numberAt,
    eth_getProof: (at) => ['eth_getProof', [contract, [], at]],
  }

  /** Sends each of `params` with the block's name. Throws `RpcError('non-canonical')` when the block is not canonical there. */
  async function ask(
    rpc: RpcAttempt,
    method: PinnedMethod,
    block: Block,
    params: readonly ((at: unknown) => readonly unknown[])[],
  ): Promise<readonly unknown[]> {
    const callsAt = (at: unknown) => params.map((param): RpcCall => [method, param(at)])
    if ((await encodingOf(rpc, method, block)) === 'hash') {
      return askByHash(rpc, method, block, callsAt(hashObject(block.hash))).catch((error: unknown) => {
        if (rejectsHashObject(error)) encodings.delete(method)
        throw error
      })
    }
    await assertCanonical(rpc, block)
    const results = await rpc.askAll(callsAt(quantity(block.number)))
    await assertCanonical(rpc, block)
    return results
  }

  async function askByHash(
    rpc: RpcAttempt,
    method: PinnedMethod,
    block: Block,
    calls: readonly RpcCall[],
  ): Promise<readonly unknown[]> {
    // A proof shows its block by the state root.
    if (method === 'eth_getProof') return rpc.askAll(calls)
    const [number, ...results] = await rpc.askAll([numberAt(hashObject(block.hash)), ...calls])
    if (!isWord(number)) throw new RpcError('fault', 'eth_call answered without its block')
    if (BigInt(number) === block.number) return results
    encodings.delete(method)
    throw new RpcError('non-canonical', `eth_call answered from another block than ${block.number}`)
  }

  function encodingOf(rpc: RpcAttempt, method: PinnedMethod, block: Block): Promise<PinEncoding> {
    const known = encodings.get(method)
    if (known !== undefined) return known
    const trial = tryHashObjects(rpc, probes[method], block)
    encodings.set(method, trial)
    trial.then(
      (encoding) => noteEncoding(method, encoding),
      () => encodings.delete(method),
    )
    return trial
  }

  function noteEncoding(method: PinnedMethod, encoding: PinEncoding): void {
    if (encoding === 'hash') byHash.add(method)
    else if (byHash.delete(method)) onLost()
  }

  /** Repeats the probes that a provider has passed. One that is not answered changes nothing. */
  async function renew(rpc: Pick<RpcAttempt, 'ask'>): Promise<void> {
    const methods = [...byHash].map(async (method) => {
      const passes = await isRejected(rpc.ask(...probes[method](hashObject(unknownHash()))))
      if (passes || !byHash.has(method)) return
      encodings.set(method, Promise.resolve('number'))
      noteEncoding(method, 'number')
    })
    await Promise.allSettled([...methods, renewLogs(rpc)])
  }

  async function renewLogs(rpc: Pick<RpcAttempt, 'ask'>): Promise<void> {
    if (rejectsUnknownBlocks === undefined || !(await rejectsUnknownBlocks) || (await rejectsUnknownNow(rpc))) return
    rejectsUnknownBlocks = Promise.resolve(false)
    onLost()
  }

  /** `eth_getLogs` by block hash; an empty list from a provider that answers so for unknown blocks is checked. */
  async function askLogs(rpc: RpcAttempt, block: Block): Promise<unknown> {
    const logs = await rpc.ask('eth_getLogs', [{ address: contract, blockHash: block.hash }])
    if (!Array.isArray(logs) || logs.length > 0 || (await rejectsUnknown(rpc))) return logs
    if ((await rpc.ask('eth_getBlockByHash', [block.hash, false])) === null)
      throw new RpcError('non-canonical', 'unknown block')
    return logs
  }

  function rejectsUnknown(rpc: RpcAttempt): Promise<boolean> {
    if (rejectsUnknownBlocks !== undefined) return rejectsUnknownBlocks
    const trial = rejectsUnknownNow(rpc)
    rejectsUnknownBlocks = trial
    trial.catch(() => (rejectsUnknownBlocks = undefined))
    return trial
  }

  function rejectsUnknownNow(rpc: Pick<RpcAttempt, 'ask'>): Promise<boolean> {
    return isRejected(rpc.ask('eth_getLogs', [{ address: contract, blockHash: unknownHash() }]))
  }

  return { ask, askLogs, renew }
}

/** Probes that a hash object is answered for a known block and rejected for an unknown one. */
async function tryHashObjects(rpc: RpcAttempt, probe: (at: unknown) => RpcCall, block: Block): Promise<PinEncoding> {
  const known = rpc.ask(...probe(hashObject(block.hash))).then(
    () => true,
    (error: unknown) => {
      if (rejectsHashObject(error)) return false
      throw error
    },
  )
  const [taken, rejected] = await Promise.all([known, isRejected(rpc.ask(...probe(hashObject(unknownHash()))))])
  return taken && rejected ? 'hash' : 'number'
}

/** A provider that took hash objects may reject them later, where other software answers behind its URL. */
export function rejectsHashObject(error: unknown): boolean {
  return error instanceof RpcError && (error.kind === 'rejected' || error.kind === 'too-wide')
}

/** Returns whether the provider rejected the request. A passing error of its own is no rejection. Throws when it did not answer. */
async function isRejected(answer: Promise<unknown>): Promise<boolean> {
  try {
    await answer
    return false
  } catch (error) {
    if (error instanceof RpcError && error.answered && error.kind !== 'busy') return !error.isFault
    throw error
  }
}

async function assertCanonical(rpc: RpcAttempt, block: Block): Promise<void> {
  const found = await rpc.ask('eth_getBlockByNumber', [quantity(block.number), false])
  if (found !== null && !isObject(found)) throw new RpcError('fault', 'no block')
  if (found?.hash !== block.hash) throw new RpcError('non-canonical', 'the number has another hash')
}

function hashObject(blockHash: Hex): Readonly<{ blockHash: Hex; requireCanonical: true }> {
  return { blockHash, requireCanonical: true }
}

/** Random, so that a provider cannot recognise the probe. */
function unknownHash(): Hex {
  return `0x${randomBytes(32).toString('hex')}`
}

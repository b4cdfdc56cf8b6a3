/**
 * Reads pinned to one block (spec §2.2 `block_hash`; EIP-1898). Some providers reject hash objects, and one that ignores
 * them would answer from another block, so each provider is probed once per method.
 */
import { randomBytes } from 'node:crypto'
import { type Hex, zeroAddress } from '@touchstone/verdict'
import { isObject } from '../../lib/json.ts'
import { quantity, RpcError } from './answer.ts'
import type { RpcAttempt, RpcCall } from './client.ts'
import type { Block } from './block.ts'

type PinnedMethod = 'eth_call' | 'eth_getProof'
/** `number`: by number, with a check before and after that this number still has the pinned hash. */
type PinEncoding = 'hash' | 'number'

export type Pin = Readonly<ReturnType<typeof createPin>>

export function createPin(contract: Hex) {
  const encodings = new Map<PinnedMethod, Promise<PinEncoding>>()
  let rejectsUnknownBlocks: Promise<boolean> | undefined

  const probes: Record<PinnedMethod, (at: unknown) => RpcCall> = {
    eth_call: (at) => ['eth_call', [{ to: zeroAddress, data: '0x' }, at]],
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
    if ((await encodingOf(rpc, method, block)) === 'hash') return rpc.askAll(callsAt(hashObject(block.hash)))
    await assertCanonical(rpc, block)
    const results = await rpc.askAll(callsAt(quantity(block.number)))
    await assertCanonical(rpc, block)
    return results
  }

  function encodingOf(rpc: RpcAttempt, method: PinnedMethod, block: Block): Promise<PinEncoding> {
    const known = encodings.get(method)
    if (known !== undefined) return known
    const trial = tryHashObjects(rpc, probes[method], block)
    encodings.set(method, trial)
    trial.catch(() => encodings.delete(method))
    return trial
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
    const trial = isRejected(rpc.ask('eth_getLogs', [{ address: contract, blockHash: unknownHash() }]))
    rejectsUnknownBlocks = trial
    trial.catch(() => (rejectsUnknownBlocks = undefined))
    return trial
  }

  return { ask, askLogs }
}

/** Probes that a hash object is answered for a known block and rejected for an unknown one. */
async function tryHashObjects(rpc: RpcAttempt, probe: (at: unknown) => RpcCall, block: Block): Promise<PinEncoding> {
  const known = rpc.ask(...probe(hashObject(block.hash))).then(
    () => true,
    (error: unknown) => {
      if (error instanceof RpcError && (error.kind === 'rejected' || error.kind === 'too-wide')) return false
      throw error
    },
  )
  const [taken, rejected] = await Promise.all([known, isRejected(rpc.ask(...probe(hashObject(unknownHash()))))])
  return taken && rejected ? 'hash' : 'number'
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

/**
 * Reads at one block and no other (spec §2.2 `block_hash`; EIP-1898). Some providers do not take hash objects, and one that
 * takes them without looking would answer from another block, so each is tried once per method before it is believed.
 */
import { randomBytes } from 'node:crypto'
import { zeroAddress } from '@touchstone/verdict'
import type { Hex } from '@touchstone/verdict'
import { RpcFailure, isObject } from './rpc-answer.ts'
import type { Rpc, RpcCall } from './rpc-connection.ts'
import type { Block } from './source.ts'

type PinnedMethod = 'eth_call' | 'eth_getProof'
/** `number`: asked by number, with a look before and after that this number still has the pinned hash. */
type Form = 'hash' | 'number'

export type Pin = Readonly<{
  /** Sends `calls(at)` with `at` naming the block. Throws `RpcFailure('gone')` when the block is not canonical there. */
  ask: (
    rpc: Rpc,
    method: PinnedMethod,
    block: Block,
    params: readonly ((at: unknown) => readonly unknown[])[],
  ) => Promise<readonly unknown[]>
  /** `eth_getLogs` by block hash; an empty list from a provider that never says «unknown block» is checked. */
  askLogs: (rpc: Rpc, block: Block) => Promise<unknown>
}>

export function createPin(contract: Hex): Pin {
  const forms = new Map<PinnedMethod, Promise<Form>>()
  let namesUnknownBlocks: Promise<boolean> | undefined

  const probes: Record<PinnedMethod, (at: unknown) => RpcCall> = {
    eth_call: (at) => ['eth_call', [{ to: zeroAddress, data: '0x' }, at]],
    eth_getProof: (at) => ['eth_getProof', [contract, [], at]],
  }

  async function ask(...[rpc, method, block, params]: Parameters<Pin['ask']>): Promise<readonly unknown[]> {
    const callsAt = (at: unknown) => params.map((param): RpcCall => [method, param(at)])
    if ((await formOf(rpc, method, block)) === 'hash') return rpc.askAll(callsAt(hashObject(block.hash)))
    await assertCanonical(rpc, block)
    const results = await rpc.askAll(callsAt(`0x${block.number.toString(16)}`))
    await assertCanonical(rpc, block)
    return results
  }

  function formOf(rpc: Rpc, method: PinnedMethod, block: Block): Promise<Form> {
    const known = forms.get(method)
    if (known !== undefined) return known
    const trial = tryHashObjects(rpc, probes[method], block)
    forms.set(method, trial)
    trial.catch(() => forms.delete(method))
    return trial
  }

  async function askLogs(rpc: Rpc, block: Block): Promise<unknown> {
    const logs = await rpc.ask('eth_getLogs', [{ address: contract, blockHash: block.hash }])
    if (!Array.isArray(logs) || logs.length > 0 || (await namesUnknown(rpc))) return logs
    if ((await rpc.ask('eth_getBlockByHash', [block.hash, false])) === null)
      throw new RpcFailure('gone', 'unknown block')
    return logs
  }

  function namesUnknown(rpc: Rpc): Promise<boolean> {
    if (namesUnknownBlocks !== undefined) return namesUnknownBlocks
    const trial = refuses(rpc.ask('eth_getLogs', [{ address: contract, blockHash: unknownHash() }]))
    namesUnknownBlocks = trial
    trial.catch(() => (namesUnknownBlocks = undefined))
    return trial
  }

  return { ask, askLogs }
}

/** A hash object must be answered for a known block and refused for an unknown one. */
async function tryHashObjects(rpc: Rpc, probe: (at: unknown) => RpcCall, block: Block): Promise<Form> {
  const known = rpc.ask(...probe(hashObject(block.hash))).then(
    () => true,
    (error: unknown) => {
      if (error instanceof RpcFailure && (error.kind === 'refused' || error.kind === 'too-wide')) return false
      throw error
    },
  )
  const [taken, refused] = await Promise.all([known, refuses(rpc.ask(...probe(hashObject(unknownHash()))))])
  return taken && refused ? 'hash' : 'number'
}

/** Whether the provider said no. A provider that did not speak at all has said nothing: that is thrown. */
async function refuses(answer: Promise<unknown>): Promise<boolean> {
  try {
    await answer
    return false
  } catch (error) {
    if (error instanceof RpcFailure && error.said && error.kind !== 'busy') return true
    throw error
  }
}

async function assertCanonical(rpc: Rpc, block: Block): Promise<void> {
  const found = await rpc.ask('eth_getBlockByNumber', [`0x${block.number.toString(16)}`, false])
  if (found !== null && !isObject(found)) throw new RpcFailure('fault', 'no block')
  if (found?.hash !== block.hash) throw new RpcFailure('gone', 'the number has another hash')
}

function hashObject(blockHash: Hex): Readonly<{ blockHash: Hex; requireCanonical: true }> {
  return { blockHash, requireCanonical: true }
}

/** Random, so that no provider can know it for a test. */
function unknownHash(): Hex {
  return `0x${randomBytes(32).toString('hex')}`
}

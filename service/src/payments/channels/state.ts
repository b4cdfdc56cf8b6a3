/** The state of payment channels on the chain: many channels in one call, at one block. */
import type { Hex } from '@touchstone/verdict'
import { decodeAbiParameters, decodeFunctionResult, encodeFunctionData, parseAbiParameters } from 'viem/utils'
import type { RpcClient } from '../../chain/rpc/client.ts'
import type { Heads } from '../heads.ts'
import { channelAbi, channelContract } from './channel.ts'

/** Amounts in the token's smallest units. `withdrawal`: what the payer has asked back; `block`: the number of the block that was read. */
export type ChannelState = {
  readonly balance: bigint
  readonly claimed: bigint
  readonly withdrawal: bigint
  readonly block: bigint
}
export type ReadChannels = (ids: readonly Hex[]) => Promise<readonly ChannelState[]>

const atOnce = 100

/** The function reads the newest block. It throws what `rpc` throws, and for bytes that are no state. */
export function createChannelReads({ rpc, heads }: { readonly rpc: RpcClient; readonly heads: Heads }): ReadChannels {
  return async (ids) => {
    const { number, hash } = await heads.head(0)
    const states: ChannelState[] = []
    for (let from = 0; from < ids.length; from += atOnce)
      states.push(...(await readSome(ids.slice(from, from + atOnce), number, hash)))
    return states
  }

  async function readSome(ids: readonly Hex[], block: bigint, blockHash: Hex): Promise<ChannelState[]> {
    const calls = ids.flatMap((id) =>
      (['channels', 'pendingWithdrawals'] as const).map((functionName) =>
        encodeFunctionData({ abi: channelAbi, functionName, args: [id] }),
      ),
    )
    const data = encodeFunctionData({ abi: channelAbi, functionName: 'multicall', args: [calls] })
    const answer = (await rpc('eth_call', [{ to: channelContract, data }, { blockHash }])) as Hex
    const results = decodeFunctionResult({ abi: channelAbi, functionName: 'multicall', data: answer })
    if (results.length !== calls.length) throw new Error('The node returned another number of results.')
    return ids.map((_, index) => {
      const [balance, claimed] = decodeAbiParameters(words, results[2 * index] as Hex)
      const [withdrawal] = decodeAbiParameters(words, results[2 * index + 1] as Hex)
      if (claimed > balance) throw new Error('The node returned a state that the contract cannot have.')
      return { balance, claimed, withdrawal, block }
    })
  }
}

const words = parseAbiParameters('uint256, uint256')

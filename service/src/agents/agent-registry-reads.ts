/**
 * Reads of the agent registries at one block (ERC-8004; spec §2.2): a contract's «no» is an answer, everything else that is not one is
 * CHAIN_UNAVAILABLE.
 */
import { checksumAddress, verdictChainId, type ChainRef, type Hex } from '@touchstone/verdict'
import {
  decodeFunctionResult,
  encodeFunctionData,
  type Abi,
  type ContractFunctionArgs,
  type ContractFunctionName,
  type ContractFunctionReturnType,
} from 'viem'
import { ServiceError } from '../errors.ts'
import { multicallAbi, multicallAddress } from './agent-registry-abi.ts'

type BlockId = Readonly<{ number: bigint; hash: Hex }>
/** `deadline` is a moment of `performance.now()` in milliseconds. */
type ReadOptions = Readonly<{ deadline?: number }>

/** What lookups need of the chain. A symbol: the block is gone. Everything it throws is CHAIN_UNAVAILABLE. */
export type RegistrySource<B extends BlockId> = {
  readonly head: (options?: ReadOptions) => Promise<B>
  readonly call: (to: Hex, data: Hex, block: B, options?: ReadOptions) => Promise<Hex | symbol>
  readonly calls: (to: Hex, datas: readonly Hex[], block: B, options?: ReadOptions) => Promise<readonly Hex[] | symbol>
}

/** A call of a view function and how its answer is read. `read` throws for bytes that are no such answer. */
export type Question<T> = { readonly to: Hex; readonly data: Hex; readonly read: (answer: Hex) => T }
/** Null: the contract itself said no. */
type Answers<T extends readonly Question<unknown>[]> = {
  readonly [I in keyof T]: T[I] extends Question<infer A> ? A | null : never
}

export type ReadsAtBlock = {
  readonly block: BlockId
  /** All of them in one call; a question that the contract refuses spoils no other. */
  readonly together: <const T extends readonly Question<unknown>[]>(questions: T) => Promise<Answers<T>>
  /** Each as a call of its own, for those that cost much gas; none may be refused. All are put to the same contract. */
  readonly each: <T>(questions: readonly Question<T>[]) => Promise<readonly T[]>
}

/** Runs reads at the head; when that block is no longer canonical, once more at the new one. */
export type RegistryReads = <T>(run: (reads: ReadsAtBlock) => Promise<T>) => Promise<T>

/** For all reads of one answer together. */
const answerTimeoutMs = 5_000

export function createRegistryReads<B extends BlockId>(source: RegistrySource<B>): RegistryReads {
  async function attempt<T>(run: (reads: ReadsAtBlock) => Promise<T>, options: ReadOptions): Promise<T> {
    const block = await source.head(options)
    return run({
      block,
      async together<const Q extends readonly Question<unknown>[]>(questions: Q) {
        if (questions.length === 0) return [] as unknown as Answers<Q>
        const answer = await source.call(multicallAddress, aggregated(questions), block, options)
        return answersOf(questions, there(answer)) as Answers<Q>
      },
      async each(questions) {
        const [first] = questions
        if (first === undefined) return []
        const datas = questions.map(({ data }) => data)
        const answers = there(await source.calls(first.to, datas, block, options))
        return questions.map(({ read }, index) => decoded(read, answers[index] ?? '0x'))
      },
    })
  }

  return async (run) => {
    const options = { deadline: performance.now() + answerTimeoutMs }
    try {
      return await attempt(run, options)
    } catch (error) {
      if (!(error instanceof BlockGone)) throw error
    }
    try {
      return await attempt(run, options)
    } catch (error) {
      throw error instanceof BlockGone ? unavailable('the block is no longer canonical') : error
    }
  }
}

/** The question «what does this view function answer». */
export function question<
  const A extends Abi,
  N extends ContractFunctionName<A, 'view'>,
  const P extends ContractFunctionArgs<A, 'view', N>,
>(abi: A, to: Hex, functionName: N, args: P): Question<ContractFunctionReturnType<A, 'view', N>> {
  type Any = { abi: Abi; functionName: string; args: readonly unknown[] }
  const called = { abi, functionName, args } as unknown as Any
  return {
    to,
    data: encodeFunctionData(called),
    read: (data) => decodeFunctionResult({ ...called, data }) as ContractFunctionReturnType<A, 'view', N>,
  }
}

/** Where an answer can be read again: the registry and the agent instead of the core contract and a token. */
export function chainRefOf(registry: Hex, agentId: bigint, block: BlockId): ChainRef {
  return {
    chain_id: verdictChainId,
    contract: checksumAddress(registry),
    token_id: agentId.toString(),
    block_number: Number(block.number),
    block_hash: block.hash,
  }
}

export function unavailable(reason: string): ServiceError {
  return new ServiceError('CHAIN_UNAVAILABLE', 'The chain could not be read.', { cause: new Error(reason) })
}

function aggregated(questions: readonly Question<unknown>[]): Hex {
  const calls = questions.map(({ to, data }) => ({ target: to, allowFailure: true, callData: data }))
  return encodeFunctionData({ abi: multicallAbi, functionName: 'aggregate3', args: [calls] })
}

function answersOf(questions: readonly Question<unknown>[], data: Hex): unknown[] {
  const read = (answer: Hex) =>
    decodeFunctionResult({ abi: multicallAbi, functionName: 'aggregate3', data: answer }) as readonly {
      success: boolean
      returnData: Hex
    }[]
  const results = decoded(read, data)
  if (results.length !== questions.length) throw unavailable('another number of answers than of questions')
  return results.map(({ success, returnData }, index) => {
    if (success) return decoded(questions[index]!.read, returnData)
    // A contract that says no gives a reason; without one it may have run out of gas.
    if (returnData === '0x') throw unavailable('a call of a registry failed without a reason')
    return null
  })
}

function decoded<T>(read: (answer: Hex) => T, answer: Hex): T {
  try {
    return read(answer)
  } catch {
    throw unavailable('an answer of a registry cannot be read') // the decoder's own words repeat the bytes
  }
}

class BlockGone extends Error {}

function there<T>(answer: T | symbol): T {
  if (typeof answer === 'symbol') throw new BlockGone()
  return answer
}

/** Reads of the agent registries that tests answer by the name of the function. */
import type { Hex } from '@touchstone/verdict'
import { decodeFunctionData } from 'viem'
import { identityAbi, reputationAbi, type RegistryReads } from '../../../src/agents/erc8004/reads.ts'

const abi = [...identityAbi, ...reputationAbi]

/** Returns a result, or null where the contract reverts. */
type Answers = Readonly<Record<string, (...args: readonly never[]) => unknown>>

/** `asked` has the name and the arguments of every call. */
export function answeredReads(answers: Answers) {
  const asked: { readonly name: string; readonly args: readonly unknown[] }[] = []
  async function all(calls: readonly { readonly data: Hex }[]): Promise<never> {
    const results = calls.map(({ data }) => {
      const { functionName: name, args } = decodeFunctionData({ abi, data })
      asked.push({ name, args })
      return answers[name]?.(...(args as readonly never[])) ?? null
    })
    return results as never
  }
  const block = { number: 7n, hash: `0x${'ab'.repeat(32)}` } as const
  const reads: RegistryReads = (run) => run({ block, together: all, each: all })
  return { reads, asked }
}

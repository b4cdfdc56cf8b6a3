import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Hex } from '@touchstone/verdict'
import { encodeFunctionResult, multicall3Abi } from 'viem'
import { multicallAddress } from '../../domain/chain.ts'
import { isChainUnavailable } from '../../lib/errors.ts'
import { createRegistryReads, identityAbi, viewCall, type RegistrySource } from './reads.ts'

const registry: Hex = `0x${'1d'.repeat(20)}`
const owner: Hex = '0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc'
const block = { number: 7n, hash: `0x${'ab'.repeat(32)}` } as const
const ownerOf = viewCall(identityAbi, registry, 'ownerOf', [0n])
const ownerWord = encodeFunctionResult({ abi: identityAbi, functionName: 'ownerOf', result: owner })
const reason: Hex = '0x7e273289'

type Result = { success: boolean; returnData: Hex }

/** A chain that gives these answers one after the other to whatever is asked. */
function scripted(...answers: (readonly Result[] | Hex | symbol)[]) {
  const asked: { to: Hex; at: bigint }[] = []
  const deadlines: (number | undefined)[] = []
  let heads = 6n
  const source: RegistrySource<{ number: bigint; hash: Hex }> = {
    async head(options) {
      deadlines.push(options?.deadline)
      return { ...block, number: (heads += 1n) }
    },
    async call(to, _data, { number }, options) {
      asked.push({ to, at: number })
      deadlines.push(options?.deadline)
      const answer = answers.shift() ?? '0x'
      if (typeof answer !== 'object') return answer
      return encodeFunctionResult({ abi: multicall3Abi, functionName: 'aggregate3', result: answer })
    },
    async calls(_to, datas, _block, options) {
      deadlines.push(options?.deadline)
      return datas.map(() => ownerWord)
    },
  }
  return { reads: createRegistryReads(source, [0, 0]), asked, deadlines }
}

describe('reads of the agent registries', () => {
  it('are one call at one block, and a revert is an answer', async () => {
    const { reads, asked } = scripted([
      { success: true, returnData: ownerWord },
      { success: false, returnData: reason },
    ])
    const found = await reads(({ together, block: { number } }) =>
      together([ownerOf, ownerOf]).then((all) => [...all, number]),
    )
    assert.deepEqual(found, [owner, null, 7n])
    assert.deepEqual(asked, [{ to: multicallAddress, at: 7n }])
  })

  it('start again at the new head while the block is not canonical', async () => {
    const gone = Symbol('gone')
    const { reads, asked } = scripted(gone, gone, [{ success: true, returnData: ownerWord }])
    assert.deepEqual(await reads(({ together }) => together([ownerOf])), [owner])
    assert.deepEqual(
      asked.map(({ at }) => at),
      [7n, 8n, 9n],
    )
    await assert.rejects(
      scripted(gone, gone, gone).reads(({ together }) => together([ownerOf])),
      isChainUnavailable,
    )
  })

  it('have one deadline for all reads of an answer, five seconds from its start', async () => {
    const { reads, deadlines } = scripted(Symbol('gone'), [{ success: true, returnData: ownerWord }])
    const began = performance.now()
    await reads(async ({ together, each }) => [await together([ownerOf]), await each([ownerOf])])
    const [deadline = 0] = deadlines
    assert.deepEqual(deadlines, Array(5).fill(deadline))
    assert.ok(deadline >= began + 5_000 && deadline <= performance.now() + 5_000)
  })

  for (const [what, answer] of [
    ['a refusal without a reason', [{ success: false, returnData: '0x' }]],
    ['nothing where no contract stands', [{ success: true, returnData: '0x' }]],
    ['bytes that are no address', [{ success: true, returnData: '0x1234' }]],
    ['too few answers', []],
    ['no answer of Multicall3', '0x1234'],
  ] as const)
    it(`are CHAIN_UNAVAILABLE for ${what}`, async () => {
      await assert.rejects(
        scripted(answer as readonly Result[] | Hex).reads(({ together }) => together([ownerOf])),
        isChainUnavailable,
      )
    })

  it('make no call for an empty list', async () => {
    const { reads, asked } = scripted()
    assert.deepEqual(await reads(({ together, each }) => Promise.all([together([]), each([])])), [[], []])
    assert.deepEqual(asked, [])
    assert.deepEqual(await reads(({ each }) => each([ownerOf])), [owner])
  })
})

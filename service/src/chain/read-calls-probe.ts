/**
 * Which form a contract can be read in (spec §2.5): asked of the chain once, when the first read needs it.
 * Only the chain's own answers decide, a revert or missing code among them. A call that merely failed decides nothing:
 * then the read fails too, or a contract with metadata hashes would for a while look like one without.
 */
import type { Hex } from '@touchstone/verdict'
import { ServiceError, reasonOf } from '../errors.ts'
import { ReadFailure } from './failover.ts'
import { callWithWord, selectors, supportsCall, wordOf } from './read-calls.ts'
import { listForm, multicallForm, registryForm, singleForm } from './read-calls-form.ts'
import type { ReadForm } from './read-calls-form.ts'
import { aggregateCall, multicallAddress, resultsOfAggregate } from './read-calls-multicall.ts'
import { blockGone } from './source.ts'
import type { Block, BlockGone, ChainSource } from './source.ts'

/** `registry`: our own contract, nothing is asked. `foreign`: no list reads. `auto`: ERC-165 tells. */
export type ReadInterface = 'registry' | 'foreign' | 'auto'

/** The form that suits the contract as it is at `block`. Throws CHAIN_UNAVAILABLE. */
export type FormChooser = (block: Block, deadline: number) => Promise<ReadForm | BlockGone>

export function createFormChooser(
  options: Readonly<{ source: ChainSource; contract: Hex; interface: ReadInterface }>,
): FormChooser {
  const { source, contract } = options
  const asked = { source, contract, withMetadata: true }
  let chosen: ReadForm | undefined = options.interface === 'registry' ? registryForm(asked) : undefined
  let flight: Promise<ReadForm | BlockGone> | undefined

  async function choose(block: Block, deadline: number): Promise<ReadForm | BlockGone> {
    if (chosen !== undefined) return chosen
    flight ??= probe(block, deadline).finally(() => (flight = undefined))
    return flight
  }

  async function probe(block: Block, deadline: number): Promise<ReadForm | BlockGone> {
    const auto = options.interface === 'auto'
    const [lists, listsMetadata, getter, multicall] = await Promise.all([
      auto ? isOne(contract, supportsCall(selectors.getAssets)) : false,
      auto ? isOne(contract, supportsCall(selectors.getAssetsWithMetadata)) : false,
      told(contract, callWithWord(selectors.metadataHash, 1n), (data) => wordOf(data) !== null),
      told(multicallAddress, aggregateCall(contract, []), (data) => resultsOfAggregate(data, 0) !== null),
    ])
    if (lists === blockGone || listsMetadata === blockGone || getter === blockGone || multicall === blockGone) {
      return blockGone
    }
    chosen = formOf({ lists, listsMetadata, getter, multicall })
    return chosen

    function isOne(to: Hex, data: Hex): Promise<boolean | BlockGone> {
      return told(to, data, (answer) => wordOf(answer) === 1n)
    }

    async function told(to: Hex, data: Hex, meansYes: (answer: Hex) => boolean): Promise<boolean | BlockGone> {
      try {
        const answer = await source.call(to, data, block, { deadline })
        return answer === blockGone ? answer : meansYes(answer)
      } catch (error) {
        if (isRevert(error)) return false
        throw error
      }
    }
  }

  function formOf(can: Readonly<Record<'lists' | 'listsMetadata' | 'getter' | 'multicall', boolean>>): ReadForm {
    const options = { ...asked, withMetadata: can.getter }
    if (can.listsMetadata) return registryForm(options)
    // With metadata hashes, one call for all of them beats a batch with a call for each.
    if (can.lists && !(can.getter && can.multicall)) return listForm(options)
    return can.multicall ? multicallForm(options) : singleForm(options)
  }

  return choose
}

/** The chain itself said no: the function reverts, or no code stands there. */
function isRevert(error: unknown): boolean {
  const cause = error instanceof ServiceError ? error.cause : undefined
  if (!(cause instanceof ReadFailure)) return false
  return cause.kinds.has('reverted') || /revert|answered 0x/i.test(reasonOf(cause))
}

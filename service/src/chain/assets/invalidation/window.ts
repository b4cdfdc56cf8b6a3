/**
 * The last blocks whose logs were read, with the tokens that each touched (spec §2.2). Each block is the parent of the next. The last one
 * is the head: the block at which every current entry of the cache holds.
 */
import type { BlockId } from '../../../domain/chain.ts'
import type { Block } from '../../rpc/block.ts'

/** The tokens that the logs of one block name, and whether it has no logs at all. */
export type Touched = Readonly<{ tokens: ReadonlySet<bigint> | 'all'; silent: boolean }>

/** States whether a record of an older block holds at the head. Perhaps it does not, or the blocks between are unknown. */
export type Validity = 'valid' | 'stale' | 'unknown'

export type Window = ReturnType<typeof createWindow>

const kept = 128

type Step = Readonly<{ block: Block; touched: Touched }>

const nothingKnown: Touched = { tokens: 'all', silent: false }

export function createWindow() {
  let steps: Step[] = []

  const base = () => steps[0]?.block.number ?? 0n
  const offset = ({ number }: BlockId) => Number(number - base())
  const knows = (place: BlockId) => steps[offset(place)]?.block.hash === place.hash
  const after = (place: BlockId): readonly Step[] => steps.slice(offset(place) + 1)

  return {
    head: (): Block | undefined => steps.at(-1)?.block,
    /** Forgets everything but this block. */
    restart: (head: Block) => void (steps = [{ block: head, touched: nothingKnown }]),
    knows,
    /** Makes the child of the head the new head. */
    append(block: Block, touched: Touched): void {
      steps.push({ block, touched })
      if (steps.length > kept) steps = steps.slice(-kept)
    },
    /** Removes the steps above a block of the window, which is the head then. */
    rewind: (block: BlockId) => void (steps = steps.slice(0, offset(block) + 1)),
    /** The number of the oldest block. */
    base,
    validity: (tokenId: bigint, readAt: BlockId): Validity => {
      if (readAt.number < base()) return 'unknown'
      // Above the head, or under another hash: the chain was reorganised since.
      if (!knows(readAt)) return 'stale'
      const touched = after(readAt).some(({ touched: { tokens } }) => tokens === 'all' || tokens.has(tokenId))
      return touched ? 'stale' : 'valid'
    },
    /** Returns whether both blocks are in the window, in this order. No block after the first up to the second has a log. */
    silentBetween(from: BlockId, to: BlockId): boolean {
      if (!knows(from) || !knows(to) || from.number > to.number) return false
      return after(from).every(({ block, touched }) => block.number > to.number || touched.silent)
    },
  }
}

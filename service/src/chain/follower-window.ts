/**
 * The last blocks that the reader has followed, each the parent of the next, and which tokens each of them touched.
 * The last one is the head: the block that every live entry of the cache is true at (spec §2.2).
 */
import type { Hex } from '@touchstone/verdict'
import type { Block } from './source.ts'

/** What the logs of one block say: the tokens they name, and whether there were any logs at all. */
export type Touched = Readonly<{ tokens: ReadonlySet<bigint> | 'all'; silent: boolean }>

/** Whether what was read at an older block holds at the head: it does, it may not, or nothing is known about the way between. */
export type Standing = 'holds' | 'changed' | 'unknown'

type Place = Readonly<{ number: bigint; hash: Hex }>

export type Window = Readonly<{
  head: () => Block | undefined
  /** Forgets everything but this block. */
  restart: (head: Block) => void
  knows: (place: Place) => boolean
  /** The block's child becomes the head. */
  append: (block: Block, touched: Touched) => void
  /** `block`, which the window knows, becomes the head again; `number` may also name the head itself. */
  rewind: (block: Place) => void
  /** The number of the oldest block. */
  base: () => bigint
  standing: (tokenId: bigint, readAt: Place) => Standing
  /** Whether both blocks are in the window, in this order, and no block after the first one up to the second has a log. */
  silentBetween: (from: Place, to: Place) => boolean
}>

const kept = 128

type Step = Readonly<{ block: Block; touched: Touched }>

const nothingKnown: Touched = { tokens: 'all', silent: false }

export function createWindow(): Window {
  let steps: Step[] = []

  const base = () => steps[0]?.block.number ?? 0n
  const at = (number: bigint): Step | undefined => steps[Number(number - base())]
  const knows = (place: Place) => at(place.number)?.block.hash === place.hash

  function after(place: Place): readonly Step[] {
    return steps.slice(Number(place.number - base()) + 1)
  }

  return {
    head: () => steps.at(-1)?.block,
    restart: (head) => void (steps = [{ block: head, touched: nothingKnown }]),
    knows,
    append(block, touched) {
      steps.push({ block, touched })
      if (steps.length > kept) steps = steps.slice(-kept)
    },
    rewind: ({ number }) => void (steps = steps.slice(0, Number(number - base()) + 1)),
    base,
    standing(tokenId, readAt) {
      if (readAt.number < base()) return 'unknown'
      // Above the head, or under another hash: the chain was reorganised since.
      if (!knows(readAt)) return 'changed'
      const touched = after(readAt).some(({ touched: { tokens } }) => tokens === 'all' || tokens.has(tokenId))
      return touched ? 'changed' : 'holds'
    },
    silentBetween(from, to) {
      if (!knows(from) || !knows(to) || from.number > to.number) return false
      return after(from).every(({ block, touched }) => block.number > to.number || touched.silent)
    },
  }
}

/**
 * V8 reports the executed functions of a source. Type stripping keeps the places of characters. The finer counts of blocks would
 * leave out operators whose right side was not evaluated.
 */
export type Range = Readonly<{ startOffset: number; endOffset: number; count: number }>

/** The smallest range around a character has its count. */
export function isCovered(ranges: readonly Range[], offset: number): boolean {
  let smallest: Range | undefined
  for (const range of ranges)
    if (
      range.startOffset <= offset &&
      offset < range.endOffset &&
      (smallest === undefined || size(range) <= size(smallest))
    )
      smallest = range
  return smallest !== undefined && smallest.count > 0
}

function size({ startOffset, endOffset }: Range): number {
  return endOffset - startOffset
}

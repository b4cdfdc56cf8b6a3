/** What feedback is about (ERC-8004, «Examples of value / valueDecimals»), and how its numbers are written. */
import { cleanText } from '@touchstone/verdict'

export type Tags = { readonly tag1: string; readonly tag2: string }

/** The ERC's own examples: they name one thing each, so that an average over one of them means something. */
export const ercTags: readonly Tags[] = [
  ...[
    'starred',
    'reachable',
    'ownerVerified',
    'uptime',
    'successRate',
    'responseTime',
    'blocktimeFreshness',
    'revenues',
  ].map((tag1) => ({ tag1, tag2: '' })),
  ...['day', 'week', 'month', 'year'].map((tag2) => ({ tag1: 'tradingYield', tag2 })),
]

const longestTag = 100

/** Is this a tag that a query may ask for? What cleaning would change, nobody types. */
export function isAskable(tag: string): boolean {
  return tag.length <= longestTag && cleanText(tag, { max: longestTag }) === tag
}

/** Tags that reviewers made up, cleaned, without repetition and without those of the ERC. */
export function otherTags(found: readonly Tags[], most: number): Tags[] {
  const others = new Map<string, Tags>()
  for (const { tag1, tag2 } of found) {
    const one = { tag1: cleanText(tag1, { max: longestTag }), tag2: cleanText(tag2, { max: longestTag }) }
    if (one.tag1 === '' && one.tag2 === '') continue
    if (ercTags.some((known) => known.tag1 === tag1 && (known.tag2 === '' || known.tag2 === tag2))) continue
    if (others.size < most) others.set(JSON.stringify([one.tag1, one.tag2]), one)
  }
  return [...others.values()]
}

/** `9977` with two decimals is `99.77`. */
export function decimalText(value: bigint, decimals: number): string {
  const sign = value < 0n ? '-' : ''
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, '0')
  const whole = digits.slice(0, digits.length - decimals)
  return decimals === 0 ? `${sign}${whole}` : `${sign}${whole}.${digits.slice(-decimals)}`
}

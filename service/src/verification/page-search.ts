/** The search of the start page: what a person types, to the path of an item (spec §4.1, §4.5). */
import { parseTokenId } from '@touchstone/verdict'
import { classPath, itemPath } from '../passport/digital-link.ts'
import { parseGtin } from '../passport/gtin.ts'
import { isRegistrableSerial } from '../passport/serial.ts'
import type { SearchView } from '../pages/search-card.ts'

/** `none`: nothing was asked for. `wrong`: the form again, with what was typed. */
export type Search =
  | { readonly kind: 'none' }
  | { readonly kind: 'found'; readonly path: string }
  | { readonly kind: 'wrong'; readonly view: SearchView }

const longest = 200

export function searchOf(query: URLSearchParams): Search {
  const typed = (name: string) => query.get(name)?.slice(0, longest).trim()
  const token = typed('token')
  if (token !== undefined) {
    const tokenId = parseTokenId(token)
    return tokenId === null ? wrong({ token, wrong: 'token' }) : { kind: 'found', path: `/token/${tokenId}` }
  }
  const [gtinText, serial] = [typed('gtin'), typed('serial') ?? '']
  if (gtinText === undefined) return { kind: 'none' }
  const view = { gtin: gtinText, serial }
  const gtin = gtinOf(gtinText)
  if (gtin === null) return wrong({ ...view, wrong: 'gtin' })
  if (serial === '') return { kind: 'found', path: classPath(gtin) }
  return isRegistrableSerial(serial)
    ? { kind: 'found', path: itemPath({ gtin, serial }) }
    : wrong({ ...view, wrong: 'serial' })
}

/** People copy the 8, 12 or 13 digits below a bar code, with spaces; all of them are a GTIN-14 with zeros in front (GS1 General Specifications §3.3.2). */
function gtinOf(text: string): string | null {
  const digits = text.replace(/[\s-]/g, '')
  if (![8, 12, 13, 14].includes(digits.length)) return null
  const parsed = parseGtin(digits.padStart(14, '0'))
  return parsed.ok ? parsed.gtin : null
}

function wrong(view: SearchView): Search {
  return { kind: 'wrong', view }
}

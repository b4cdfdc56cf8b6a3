/**
 * Paths of data elements (EN 18222, ReadDataElement): the part of JSONPath (RFC 9535) that names one element, rooted at the passport's
 * elements. A name selects by `elementId`, an index by place: `materials[0].name`, `$['footprint'].kgCo2e`.
 */
import type { DataElement } from './document.ts'

export type ElementPath = readonly (string | number)[]

const maxLength = 500
const segment = /\.?([A-Za-z_][A-Za-z0-9_]*)|\[(\d{1,4})\]|\[(?:'([^'\\\]]{1,100})'|"([^"\\\]]{1,100})")\]/y

/** Parses a path; null for a malformed one and for what selects several elements: wildcards, slices, filters. */
export function parseElementPath(text: string): ElementPath | null {
  if (text.length === 0 || text.length > maxLength) return null
  const path: (string | number)[] = []
  segment.lastIndex = text.startsWith('$') ? 1 : 0
  while (segment.lastIndex < text.length) {
    const isFirst = segment.lastIndex === 0
    const hasDot = text[segment.lastIndex] === '.'
    const found = segment.exec(text)
    if (found === null) return null
    const [, name, index, single, double] = found
    // Only the first name of a path without root stands without a dot.
    if (name !== undefined && hasDot === isFirst) return null
    path.push(index === undefined ? (name ?? single ?? double ?? '') : Number(index))
  }
  return path.length === 0 ? null : path
}

/** Returns the element of a path, or null. `elements` and `value` also name the members of the standard's own structure. */
export function elementAt(elements: readonly DataElement[], path: ElementPath): DataElement | null {
  let members: readonly DataElement[] = elements
  let found: DataElement | null = null
  for (const step of path) {
    const next = typeof step === 'number' ? members[step] : members.find(({ elementId }) => elementId === step)
    if (next === undefined) {
      if (step === 'elements' || step === 'value') continue
      return null
    }
    found = next
    members = next.elements ?? (Array.isArray(next.value) ? (next.value as readonly DataElement[]) : [])
  }
  return found
}

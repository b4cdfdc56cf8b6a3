/**
 * The first half of `tag doctor` (spec §4.4): what the text of an address shows about the template and the mirror offsets,
 * and which pairs of hex in it could be PICC block and MAC.
 */
import { bytesOf } from './bytes.ts'

export type AddressFinding = Readonly<{
  code:
    | 'not_an_address'
    | 'nothing_mirrored'
    | 'placeholders'
    | 'parameter_names'
    | 'placeholder_length'
    | 'wrong_offsets'
  text: string
}>

/** A possible tap; `between` is the text from PICC block to MAC, which a chip may feed into its MAC. */
export type Reading = Readonly<{ picc: Uint8Array; cmac: Uint8Array; between: string }>

/** The findings name what is certain from the text alone; `readings` are tried with keys, likeliest first. */
export function readAddress(address: string): { findings: readonly AddressFinding[]; readings: readonly Reading[] } {
  if (address.length > 2048 || !URL.canParse(address)) return { findings: [notAnAddress], readings: [] }
  const picc = valueOf(address, 'picc')
  const cmac = valueOf(address, 'cmac')
  if (picc !== null && cmac !== null && isHex(picc.text, 32) && isHex(cmac.text, 16)) {
    const isBlank = /^0+$/.test(picc.text) || /^0+$/.test(cmac.text)
    return { findings: isBlank ? [blank] : [], readings: isBlank ? [] : [reading(address, picc.at, cmac.at)] }
  }
  const readings = allReadings(address)
  if (readings.length === 0) return { findings: [/0{16}/.test(address) ? blank : nothing], readings }
  const finding = placeholderLength(picc?.text) ?? (otherNames(address, picc, cmac) ? parameterNames : wrongOffsets)
  return { findings: [finding], readings }
}

function valueOf(address: string, name: string): { text: string; at: number } | null {
  const match = new RegExp(`[?&]${name}=([^&#]*)`).exec(address)
  const text = match?.[1]
  return match === null || text === undefined ? null : { text, at: match.index + name.length + 2 }
}

function isHex(text: string, digits: number): boolean {
  return text.length === digits && /^[0-9a-fA-F]*$/.test(text)
}

/** The chip always writes 32 characters, so a shorter placeholder loses what stood behind it and a longer one keeps zeros. */
function placeholderLength(value: string | undefined): AddressFinding | null {
  if (value === undefined || !/^[0-9A-F]{32}/.test(value)) return null
  const rest = value.slice(32)
  const eaten = [1, 2, 3, 4, 5].find((count) => rest.startsWith('&cmac='.slice(count)))
  const length = eaten !== undefined ? 32 - eaten : /^0+$/.test(rest) ? 32 + rest.length : null
  if (length === null) return null
  const text = `The picc placeholder has ${length} characters instead of 32.`
  return { code: 'placeholder_length', text }
}

function otherNames(address: string, picc: { at: number } | null, cmac: { at: number } | null): boolean {
  return (
    picc === null && cmac === null && /=[0-9a-fA-F]{32}(&|$)/.test(address) && /=[0-9a-fA-F]{16}(&|#|$)/.test(address)
  )
}

/** Every 32 and every 16 hex digits that do not overlap: wrong offsets put them anywhere. */
function allReadings(address: string): Reading[] {
  const start = address.indexOf('/', 8)
  const runs = [...address.matchAll(/[0-9a-fA-F]{16,}/g)].filter(({ index }) => start > 0 && index > start)
  const windows = (digits: number) =>
    runs.flatMap(({ 0: run, index }) => {
      const count = Math.min(run.length, 80) - digits + 1
      return count < 1 ? [] : Array.from({ length: count }, (_, shift) => index + shift)
    })
  const pairs = windows(32).flatMap((at) => windows(16).map((macAt) => [at, macAt] as const))
  return pairs
    .filter(([at, macAt]) => macAt >= at + 32 || at >= macAt + 16)
    .slice(0, 10_000)
    .map(([at, macAt]) => reading(address, at, macAt))
}

function reading(address: string, piccAt: number, macAt: number): Reading {
  const bytes = (at: number, digits: number) => bytesOf(address.slice(at, at + digits)) ?? new Uint8Array(digits / 2)
  return { picc: bytes(piccAt, 32), cmac: bytes(macAt, 16), between: address.slice(piccAt, Math.max(piccAt, macAt)) }
}

const notAnAddress: AddressFinding = { code: 'not_an_address', text: 'This is not a URL of at most 2048 characters.' }
const nothing: AddressFinding = {
  code: 'nothing_mirrored',
  text: 'The address carries no PICC block of 32 and no MAC of 16 hex digits.',
}
const blank: AddressFinding = {
  code: 'placeholders',
  text: 'The address still shows placeholder zeros: SDM is off, or the chip mirrors to other offsets.',
}
const parameterNames: AddressFinding = {
  code: 'parameter_names',
  text: 'The parameters have other names; this verifier reads picc and cmac.',
}
const wrongOffsets: AddressFinding = {
  code: 'wrong_offsets',
  text: 'The mirrored values do not start right behind picc= and cmac=: the offsets in the file settings do not fit the address.',
}

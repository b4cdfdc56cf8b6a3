/**
 * The template of a chip (spec §4.4; NXP AN12196 §4, NFC Forum URI record). It has the content of file 02, mirror offsets and file
 * settings, from a URL with `{picc}` and `{cmac}`.
 */
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { join, littleEndian } from '../bytes.ts'
import type { MacInput } from '../sun/sun.ts'

export type TagTemplate = Readonly<{
  /** The URL with zeros as placeholders, as the chip shows it before SDM is switched on. */
  url: string
  macInput: MacInput
  /** Content of file 02 from offset 0: NLEN and one URI record. */
  ndef: Uint8Array
  piccOffset: number
  macInputOffset: number
  macOffset: number
  /** Data of ChangeFileSettings for file 02, without the file number. */
  settings: Uint8Array
}>

type TemplateResult =
  | { readonly ok: true; readonly template: TagTemplate }
  | { readonly ok: false; readonly error: string }

/** The number of characters after `https://` that fit into one short record of file 02 (256 bytes). */
export const maxTemplateLength = 249

/** Lays out a URL such as `https://verify.example.com/api/verify?picc={picc}&cmac={cmac}`. */
export function createTemplate(address: string, macInput: MacInput = 'empty'): TemplateResult {
  const error = templateError(address, macInput)
  return error === null ? { ok: true, template: templateOf(address, macInput) } : { ok: false, error }
}

/** Lays out a URL without a check of its parts. Its parameters may have other names. */
export function templateOf(address: string, macInput: MacInput = 'empty'): TagTemplate {
  const url = fillIn(address)
  const piccOffset = recordStart + address.replace('{cmac}', macPlaceholder).indexOf('{picc}')
  const macOffset = recordStart + address.replace('{picc}', piccPlaceholder).indexOf('{cmac}')
  const macInputOffset = macInput === 'picc' ? piccOffset : macOffset
  const body = utf8ToBytes(url.slice(scheme.length))
  const record = join([0xd1, 0x01, body.length + 1, 0x55, httpsPrefix], body)
  return {
    url,
    macInput,
    ndef: join([record.length >> 8, record.length & 0xff], record),
    piccOffset,
    macInputOffset,
    macOffset,
    settings: fileSettings([piccOffset, macInputOffset, macOffset]),
  }
}

/** Parses the URL in file 02, or returns `null` when it holds no URI record. */
export function parseFileUrl(file: Uint8Array): string | null {
  const length = ((file[0] ?? 0) << 8) | (file[1] ?? 0)
  if (file[2] !== 0xd1 || file[5] !== 0x55 || file[6] !== httpsPrefix || file.length < length + 2) return null
  return scheme + new TextDecoder().decode(file.subarray(7, 2 + length))
}

function fillIn(address: string): string {
  return address.replace('{picc}', piccPlaceholder).replace('{cmac}', macPlaceholder)
}

function templateError(address: string, macInput: MacInput): string | null {
  const { length } = fillIn(address).slice(scheme.length)
  const checks: readonly [boolean, string][] = [
    [address.startsWith(scheme), 'The address must start with https:// in lower case.'],
    [/^[\x21-\x7e]+$/.test(address), 'The address must be printable ASCII without spaces.'],
    [address.split('{picc}').length === 2, 'The address must contain {picc} exactly once.'],
    [address.split('{cmac}').length === 2, 'The address must contain {cmac} exactly once.'],
    [
      !/[{}]/.test(fillIn(address)),
      'The address has a placeholder other than {picc} and {cmac}; only a file of chips fills in {gtin} and {serial}.',
    ],
    [!address.includes('#'), 'The part after # never reaches the server.'],
    [/[?&]picc=\{picc\}(&|$)/.test(address), 'The address must carry the parameter picc={picc}.'],
    [/[?&]cmac=\{cmac\}(&|$)/.test(address), 'The address must carry the parameter cmac={cmac}.'],
    [
      macInput === 'empty' || address.includes('{picc}&cmac={cmac}'),
      'With the picc MAC input the address must contain {picc}&cmac={cmac}.',
    ],
    [length <= maxTemplateLength, `The address has ${length} characters after https://, ${maxTemplateLength} fit.`],
    [URL.canParse(address.replaceAll(/[{}]/g, '')), 'The address is not a URL.'],
  ]
  return checks.find(([holds]) => !holds)?.[1] ?? null
}

/**
 * Encodes the settings: SDM on, plain communication. Read free, write and change by key 0; UID and counter mirrored as ASCII; counter not
 * readable, metaRead key 1, fileRead key 2. Fields that do not apply are left out: the chip rejects zeros instead (917E, 919E).
 */
function fileSettings(offsets: readonly number[]): Uint8Array {
  return join([0x40, 0x00, 0xe0, 0xc1, 0xff, 0x12], ...offsets.map((offset) => littleEndian(offset, 3)))
}

const scheme = 'https://'
const httpsPrefix = 0x04
const piccPlaceholder = '0'.repeat(32)
const macPlaceholder = '0'.repeat(16)
// NLEN (2), record header (4), URI prefix (1), minus the scheme that the prefix stands for.
const recordStart = 7 - scheme.length

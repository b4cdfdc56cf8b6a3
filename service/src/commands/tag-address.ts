/** The address that a chip shows, as options of `tag template`, `tag keys` and `tag emulate` (spec §4.4–4.6). */
import { Option, type Command } from 'commander'
import { encodeSerial, isRegistrableSerial } from '../passport/serial.ts'
import type { MacInput } from '../tap/sun.ts'
import { createTemplate, type TagTemplate } from '../tap/template.ts'
import { parseAnyGtin } from './store-arguments.ts'
import { CommandError } from './store-command.ts'

export type AddressOptions = { readonly url?: string; readonly host?: string; readonly item?: string }

export function addAddressOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--url <address>', 'address with {picc} and {cmac} where the chip puts them, in quotes').conflicts([
        'host',
        'item',
      ]),
    )
    .option('--host <name>', 'short for https://<name>/api/verify?picc={picc}&cmac={cmac}')
    .option('--item <gtin/serial>', 'with --host: the item’s own Digital Link, https://<name>/01/<gtin>/21/<serial>?…')
}

/** The address with its marks, or null when none was asked for. Throws one sentence when the options do not fit. */
export function addressOfOptions({ url, host, item }: AddressOptions): string | null {
  if (url !== undefined) return url
  if (host === undefined) {
    if (item !== undefined) throw new CommandError('--item needs --host: the name of the host that the link opens.')
    return null
  }
  if (!/^[a-z0-9.-]{1,200}(?::\d{1,5})?$/.test(host) || !URL.canParse(`https://${host}`))
    throw new CommandError('--host is a host name in lower case, such as verify.example.com.')
  return `https://${host}${item === undefined ? '/api/verify' : pathOf(item)}?picc={picc}&cmac={cmac}`
}

function pathOf(item: string): string {
  const [gtinText = ''] = item.split('/', 1)
  const gtin = parseAnyGtin(gtinText)
  const serial = item.slice(gtinText.length + 1)
  if (gtin === null || !isRegistrableSerial(serial))
    throw new CommandError(
      '--item is a GTIN with a right check digit, a slash and a serial: 09520001000010/M41-002208.',
    )
  return `/01/${gtin}/21/${encodeSerial(serial)}`
}

/** Lays the address out, or throws the sentence that says why a chip cannot show it. */
export function templateOf(address: string, macInput: MacInput): TagTemplate {
  const made = createTemplate(address, { macInput })
  if (!made.ok) throw new CommandError(made.error)
  return made.template
}

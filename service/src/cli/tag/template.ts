/** `touchstone tag template`: the template of a chip for a URL (spec §4.4). It needs no store, no key and no chain. */
import { type Command, Option } from 'commander'
import { argument, defineCommand, parseAnyGtin } from '../session/command.ts'
import { CommandError, formatJson } from '../session/output.ts'
import { encodeSerial, isRegistrableSerial, type ItemKey } from '../../domain/gs1/serial.ts'
import { toHex } from '../../tap/bytes.ts'
import { batchHint } from '../../tap/keys/batch.ts'
import { createTemplate, type TagTemplate } from '../../tap/provisioning/template.ts'
import type { MacInput } from '../../tap/sun/sun.ts'

type Options = AddressOptions & { readonly batch?: string; readonly macInput: MacInput; readonly json?: true }

export function templateCommand(print: (line: string) => void): Command {
  const description = 'Lays out the address of a chip: content of file 02 (NDEF), mirror offsets and file settings.'
  const command = defineCommand('template', description, {
    notes: `The chip writes 32 hex digits at {picc} and 16 at {cmac} on every tap. Write the NDEF bytes to file 02, then send the
settings with ChangeFileSettings (file 02, CommMode.Full, key 0). The batch of the tag must have the same --mac-input.`,
    examples: [
      'touchstone tag template --host verify.example.com',
      'touchstone tag template --host verify.example.com --item 09520001000010/M41-002208',
      "touchstone tag template --url 'https://example.com/t?picc={picc}&cmac={cmac}' --mac-input picc",
    ],
  })
  return addAddressOptions(command)
    .option(
      '--batch <id>',
      'batch of the tags: its hint stands in the link where the address has {batch}',
      argument.batchId,
    )
    .option('--mac-input <input>', 'what the MAC covers: empty, or picc', argument.macInput, 'empty')
    .option('--json', 'print a JSON object')
    .action((options: Options) => {
      const { batch, macInput, json } = options
      const template = layOut(requiredAddress(options), { macInput, id: batch })
      for (const line of format(template, json === true)) print(line)
    })
}

function format(template: TagTemplate, asJson: boolean): string[] {
  const { url, macInput, piccOffset, macInputOffset, macOffset } = template
  const [ndef, settings] = [toHex(template.ndef), toHex(template.settings)]
  if (asJson) return [formatJson({ url, macInput, ndef, piccOffset, macInputOffset, macOffset, settings })]
  return [
    `url               ${url}`,
    `ndef              ${ndef}`,
    `picc offset       ${piccOffset}`,
    `mac input offset  ${macInputOffset}`,
    `mac offset        ${macOffset}`,
    `file settings     ${settings}`,
    `mac input         ${macInput}`,
  ]
}

export type AddressOptions = Readonly<Partial<Record<'url' | 'host' | 'item', string | undefined>>>

export function addAddressOptions(command: Command): Command {
  const url = new Option(
    '--url <address>',
    'URL with {picc} and {cmac} where the chip puts them, and {batch} for the batch’s hint, in quotes',
  )
  return command
    .addOption(url.conflicts(['host', 'item']))
    .option(
      '--host <name>',
      'short for https://<name>/tap?b={batch}&picc={picc}&cmac={cmac}, which opens the page of the tagged item',
    )
    .option('--item <gtin/serial>', 'with --host: the item’s own Digital Link, https://<name>/01/<gtin>/21/<serial>?…')
}

/** Returns the URL with its placeholders, or null when no option names one. Throws one sentence when the options do not fit. */
export function optionalAddress({ url, host, item }: AddressOptions): string | null {
  if (url !== undefined) return url
  if (host === undefined) {
    if (item !== undefined) throw new CommandError('--item needs --host: the name of the host that the link opens.')
    return null
  }
  if (!/^[a-z0-9.-]{1,200}(?::\d{1,5})?$/.test(host) || !URL.canParse(`https://${host}`))
    throw new CommandError('--host is a host name in lower case, such as verify.example.com.')
  return `https://${host}${item === undefined ? '/tap' : itemPath(item)}?b={batch}&picc={picc}&cmac={cmac}`
}

/** Returns the URL with its placeholders. Throws one sentence when no option names one. */
export function requiredAddress(options: AddressOptions): string {
  const address = optionalAddress(options)
  if (address !== null) return address
  throw new CommandError('Give the address: --host verify.example.com, or --url with a full one.')
}

/**
 * Returns the URL of one item with its placeholders. It is, with --host its Digital Link, or /tap for a tag without an item; with --url
 * that URL, in which `{gtin}` and `{serial}` stand for the item. Null: the URL has them, and there is no item.
 */
export function addressOfItem(options: Pick<AddressOptions, 'url' | 'host'>, item: ItemKey | undefined): string | null {
  const { url, host } = options
  if (url === undefined) return requiredAddress({ host, item: item && `${item.gtin}/${item.serial}` })
  if (item === undefined) return /\{(?:gtin|serial)\}/.test(url) ? null : url
  return url.replaceAll('{gtin}', item.gtin).replaceAll('{serial}', () => encodeSerial(item.serial))
}

function itemPath(item: string): string {
  const [gtinText = ''] = item.split('/', 1)
  const gtin = parseAnyGtin(gtinText)
  const serial = item.slice(gtinText.length + 1)
  if (gtin === null || !isRegistrableSerial(serial))
    throw new CommandError(
      '--item is a GTIN with a right check digit, a slash and a serial: 09520001000010/M41-002208.',
    )
  return `/01/${gtin}/21/${encodeSerial(serial)}`
}

/**
 * Lays out the template of a URL, with the hint of its batch where the URL has `{batch}`. Throws the sentence that says why a chip cannot
 * show it.
 */
export function layOut(
  address: string,
  { id, macInput }: { id?: string | undefined; macInput: MacInput },
): TagTemplate {
  const hinted = id === undefined ? address.replace('b={batch}&', '') : address.replace('{batch}', batchHint(id))
  if (hinted.includes('{batch}')) throw new CommandError('{batch} stands once in an address, for the --batch given.')
  const made = createTemplate(hinted, macInput)
  if (!made.ok) throw new CommandError(made.error)
  return made.template
}

/** `touchstone tag template`: what a chip must hold to carry taps to an address (spec §4.4). It needs no store, no key and no chain. */
import { Command } from 'commander'
import { hexOf } from '../tap/bytes.ts'
import type { MacInput } from '../tap/sun.ts'
import { addAddressOptions, addressOfOptions, templateOf, type AddressOptions } from './tag-address.ts'
import { argument } from './store-arguments.ts'
import { CommandError } from './store-command.ts'

type Options = AddressOptions & { readonly macInput: MacInput; readonly json?: true }

export function templateCommand(print: (line: string) => void): Command {
  return addAddressOptions(new Command('template'))
    .description('Lays out the address of a chip: content of file 02 (NDEF), mirror offsets and file settings.')
    .option('--mac-input <input>', 'what the MAC covers: empty, or picc', argument.macInput, 'empty')
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      `
The chip writes 32 hex digits at {picc} and 16 at {cmac} on every tap. Write the NDEF bytes to file 02, then send the
settings with ChangeFileSettings (file 02, CommMode.Full, key 0). The batch of the tag must have the same --mac-input.

Examples:
  touchstone tag template --host verify.example.com
  touchstone tag template --host verify.example.com --item 09520001000010/M41-002208
  touchstone tag template --url 'https://example.com/t?picc={picc}&cmac={cmac}' --mac-input picc`,
    )
    .action((options: Options) => {
      const address = addressOfOptions(options)
      if (address === null)
        throw new CommandError('Give the address: --host verify.example.com, or --url with a full one.')
      for (const line of linesOf(templateOf(address, options.macInput), options.json === true)) print(line)
    })
}

function linesOf(template: ReturnType<typeof templateOf>, asJson: boolean): string[] {
  const { url, macInput, piccOffset, macInputOffset, macOffset } = template
  const ndef = hexOf(template.ndef)
  const settings = hexOf(template.settings)
  if (asJson) return [JSON.stringify({ url, macInput, ndef, piccOffset, macInputOffset, macOffset, settings }, null, 2)]
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

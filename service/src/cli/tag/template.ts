/** `touchstone tag template`: the template of a chip for a URL (spec §4.4). It needs no store, no key and no chain. */
import type { Command } from 'commander'
import { toHex } from '../../tap/bytes.ts'
import type { TagTemplate } from '../../tap/provisioning/template.ts'
import type { MacInput } from '../../tap/sun/sun.ts'
import { argument } from '../session/arguments.ts'
import { defineCommand } from '../session/command.ts'
import { addAddressOptions, layOut, requiredAddress, type AddressOptions } from './address.ts'

type Options = AddressOptions & { readonly macInput: MacInput; readonly json?: true }

export function templateCommand(print: (line: string) => void): Command {
  const command = defineCommand(
    'template',
    'Lays out the address of a chip: content of file 02 (NDEF), mirror offsets and file settings.',
    {
      notes: `The chip writes 32 hex digits at {picc} and 16 at {cmac} on every tap. Write the NDEF bytes to file 02, then send the
settings with ChangeFileSettings (file 02, CommMode.Full, key 0). The batch of the tag must have the same --mac-input.`,
      examples: [
        'touchstone tag template --host verify.example.com',
        'touchstone tag template --host verify.example.com --item 09520001000010/M41-002208',
        "touchstone tag template --url 'https://example.com/t?picc={picc}&cmac={cmac}' --mac-input picc",
      ],
    },
  )
  return addAddressOptions(command)
    .option('--mac-input <input>', 'what the MAC covers: empty, or picc', argument.macInput, 'empty')
    .option('--json', 'print a JSON object')
    .action((options: Options) => {
      for (const line of format(layOut(requiredAddress(options), options.macInput), options.json === true)) print(line)
    })
}

function format(template: TagTemplate, asJson: boolean): string[] {
  const { url, macInput, piccOffset, macInputOffset, macOffset } = template
  const [ndef, settings] = [toHex(template.ndef), toHex(template.settings)]
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

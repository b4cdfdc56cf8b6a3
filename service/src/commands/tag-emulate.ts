/** `touchstone tag emulate`: taps a tag that exists in software only (spec §4.4). Demo batches only. */
import { Command } from 'commander'
import { demoBatch, demoUid } from './demo-catalogue.ts'
import { addAddressOptions, addressOfOptions, type AddressOptions } from './tag-address.ts'
import { emulateTaps } from './tag-emulator.ts'
import { argument } from './store-arguments.ts'
import { CommandError, type RunWork, type Session } from './store-command.ts'

type Options = AddressOptions & {
  readonly batch?: string
  readonly uid?: Uint8Array
  readonly tap?: true
  readonly count?: number
  readonly json?: true
}

export function emulateCommand(run: RunWork): Command {
  return addAddressOptions(new Command('emulate'))
    .description('Taps a software tag of a demo batch and prints the address that a phone would open.')
    .option('--tap', 'tap the tag once: prints an address that verifies once')
    .option('--count <n>', 'tap it n times: one address a line', argument.count(1_000))
    .option('--batch <id>', 'demo batch of the tag', argument.batchId)
    .option('--uid <uid>', 'UID of the tag, 04 and 12 more hex digits; any you like', argument.uid)
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      `
Without --batch and --uid it is the tag of the first bound product of npm start. The tag counts on from one call to the
next, as a chip does. An address for a host of your own is printed so that it opens on the service of this machine.

Examples:
  touchstone tag emulate --tap
  curl "$(touchstone tag emulate --tap)"
  touchstone tag emulate --batch demo --uid 04112233445566 --count 3`,
    )
    .action((options: Options) => run((session) => emulate(session, options)))
}

async function emulate(session: Session, options: Options): Promise<void> {
  if (options.tap !== true && options.count === undefined)
    throw new CommandError('Say --tap for one tap, or --count for several.')
  const address = addressOfOptions(options)
  const { batchId, uid } = await tagOf(session, options)
  const { urls, counter, uid: name } = await emulateTaps(session, { batchId, uid, address, count: options.count ?? 1 })
  if (options.json === true)
    return session.io.out(JSON.stringify({ uid: name, batch: batchId, counter, urls }, null, 2))
  for (const url of urls) session.io.out(url)
}

/** What the options name, or the first product of the demonstration that carries a tag. */
async function tagOf({ store }: Session, { batch, uid }: Options): Promise<{ batchId: string; uid: Uint8Array }> {
  if (batch !== undefined && uid !== undefined) return { batchId: batch, uid }
  if (batch !== undefined || uid !== undefined) throw new CommandError('--batch and --uid belong together.')
  for (let index = 0; index < 100; index++) {
    if ((await store.tags.tagOfUid(demoUid(index))) !== undefined) return { batchId: demoBatch, uid: demoUid(index) }
  }
  throw new CommandError('There is no demo product here (npm start makes some): name a tag with --batch and --uid.')
}

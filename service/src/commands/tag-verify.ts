/** `touchstone tag verify`: a tap as GET /api/verify answers it, asked in process (spec §4.4). */
import { Command } from 'commander'
import type { Parts } from '../parts.ts'
import { patiently } from './patience.ts'
import { argument } from './store-arguments.ts'
import { chainOf, type RunWork, type Session } from './store-command.ts'

type Presented = Awaited<ReturnType<Parts['presentTap']>>
type Resolved = Extract<Presented, { kind: 'resolved' }>

export function verifyTagCommand(run: RunWork): Command {
  return new Command('verify')
    .description('Verifies a tap and shows the item it is bound to. This uses the tap up, as opening it would.')
    .argument('<url>', 'address that the tag gave, in quotes', argument.tapUrl)
    .option('--json', 'one JSON object')
    .addHelpText(
      'after',
      `
The tap counts as used from now on: within the window (TAP_WINDOW_SECONDS) it passes again, afterwards it is a replay for
ever. To look at an address without using it: touchstone tag doctor. Exit code 0 when it verifies, 1 when not.

Example:
  touchstone tag verify "$(touchstone tag emulate --tap)"`,
    )
    .action((url: string, options: { json?: true }) => run((session) => verify(session, url, options)))
}

async function verify(session: Session, url: string, { json }: { json?: true }): Promise<number> {
  const { io } = session
  const { presentTap } = chainOf(session)
  // A tap is used up before the chain is asked; asked again at once it is the same tap.
  const presented = await patiently(io, () => presentTap(tapOf(url)))
  if (json === true) io.out(JSON.stringify(jsonOf(presented), null, 2))
  else for (const line of presented.kind === 'resolved' ? linesOf(presented) : [refusalOf(presented)]) io.out(line)
  return presented.kind === 'resolved' ? 0 : 1
}

/** The two parameters as a tap route reads them: a repeated one is seen. */
export function tapOf(url: string): { readonly picc: string[]; readonly cmac: string[] } {
  const { searchParams } = new URL(url)
  return { picc: searchParams.getAll('picc'), cmac: searchParams.getAll('cmac') }
}

/** Why a tap leads to no item. */
export function refusalOf(presented: Exclude<Presented, Resolved>): string {
  switch (presented.kind) {
    case 'malformed':
      return `not verified: ${presented.error}`
    case 'not_configured':
      return 'not verified: this verifier holds no tag keys (or no TAG_PEPPER).'
    case 'counterfeit':
      return `not verified: counterfeit (${presented.reason}); touchstone tag doctor says more.`
    case 'replayed':
      return 'not verified: replayed. This tap was used before; tap the tag again.'
    case 'challenge':
      return `not verified yet: tap the tag again within ${presented.seconds} s (TAP_CHALLENGE is on).`
    case 'unbound':
      return `genuine, but not bound to an item: tag ${presented.tag.uid}, tap ${presented.tag.tapCounter}.`
  }
}

function linesOf({ tag, verdict, block }: Resolved): string[] {
  const { name, brand } = verdict.untrusted ?? {}
  const described = [brand, name].filter((text) => text !== undefined).join(' · ')
  return [
    'verified   yes: the tag is genuine and bound',
    `asset      ${verdict.token_id}${described === '' ? '' : `  (as whoever minted it says: ${described})`}`,
    `state      ${verdict.state}${verdict.flagged ? ', FLAGGED' : ', not flagged'}; authentic: ${verdict.authentic}`,
    `tag        ${tag.uid}, tap ${tag.tapCounter}, batch ${tag.batchId}${tag.fresh ? '' : ' (the same tap again)'}`,
    `block      ${block.number} ${block.hash}`,
  ]
}

function jsonOf(presented: Presented): object {
  if (presented.kind !== 'resolved') return { verified: false, reason: presented.kind }
  const { tag, verdict } = presented
  return { verified: true, uid: tag.uid, tapCounter: tag.tapCounter, fresh: tag.fresh, verdict }
}

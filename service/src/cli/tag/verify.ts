/** `touchstone tag verify` verifies a tap as GET /api/verify does (spec §4.4). */
import type { Command } from 'commander'
import { argument, defineCommand, inSession } from '../session/command.ts'
import { formatJson } from '../session/output.ts'
import { chainOf, retryChain, type RunWork, type Session } from '../session/session.ts'
import { parseTapUrl } from '../../tap/parameters.ts'
import type { TapOutcome } from '../../tap/resolve-tap.ts'

type Resolved = Extract<TapOutcome, { kind: 'resolved' }>

export function verifyTagCommand(run: RunWork): Command {
  const description = 'Verifies a tap and shows the item it is bound to. This uses the tap up, as opening it would.'
  return defineCommand('verify', description, {
    notes: `The tap counts as used from now on: within the window (TAP_WINDOW_SECONDS) it passes again, afterwards it is a replay for
ever. To look at an address without using it: touchstone tag doctor. Exit code 0 when it verifies, 1 when not.`,
    examples: ['touchstone tag verify "$(touchstone tag emulate --tap)"'],
  })
    .argument('<url>', 'address that the tag gave, in quotes', argument.tapUrl)
    .option('--json', 'print a JSON object')
    .action(inSession(run, verify))
}

async function verify(session: Session, url: string, { json }: { json?: true }): Promise<number> {
  const { io } = session
  const outcome = await resolveTapUrl(session, url)
  if (json === true) io.out(formatJson(toJson(outcome)))
  else for (const line of outcome.kind === 'resolved' ? format(outcome) : [formatRefusal(outcome)]) io.out(line)
  return outcome.kind === 'resolved' ? 0 : 1
}

/** Resolves the tap of a URL. It is consumed also when the chain cannot be read, so that a retry is the same tap. */
export function resolveTapUrl(session: Session, url: string): Promise<TapOutcome> {
  const { resolveTap } = chainOf(session)
  return retryChain(session.io, () => resolveTap(parseTapUrl(url)))
}

/** Formats the reason why a tap resolves to no item. */
export function formatRefusal(outcome: Exclude<TapOutcome, Resolved>): string {
  switch (outcome.kind) {
    case 'malformed':
      return `not verified: ${outcome.error}`
    case 'not_configured':
      return 'not verified: this verifier lacks tag keys (or TAG_PEPPER).'
    case 'busy':
      return `not verified yet: many forged taps are arriving; try again in ${outcome.seconds} s.`
    case 'counterfeit':
      return `not verified: counterfeit (${outcome.reason}); touchstone tag doctor says more.`
    case 'replayed':
      return 'not verified: replayed. This tap was used before; tap the tag again.'
    case 'challenge':
      return `not verified yet: tap the tag again within ${outcome.seconds} s (TAP_CHALLENGE is on).`
    case 'unbound':
      return `genuine, but not bound to an item: tag ${outcome.tag.uid}, tap ${outcome.tag.tapCounter}.`
  }
}

function format({ tag, verdict, block }: Resolved): string[] {
  const { name, brand } = verdict.untrusted ?? {}
  const described = [brand, name].filter((text) => text !== undefined).join(' · ')
  return [
    'verified   yes: the tag is genuine and bound',
    `asset      ${verdict.token_id}${described === '' ? '' : `  (as its issuer says: ${described})`}`,
    `state      ${verdict.state}${verdict.flagged ? ', FLAGGED' : ', not flagged'}; authentic: ${verdict.authentic}`,
    `tag        ${tag.uid}, tap ${tag.tapCounter}, batch ${tag.batchId}${tag.fresh ? '' : ' (the same tap again)'}`,
    `block      ${block.number} ${block.hash}`,
  ]
}

function toJson(outcome: TapOutcome): object {
  if (outcome.kind !== 'resolved') return { verified: false, reason: outcome.kind }
  const { tag, verdict } = outcome
  return { verified: true, uid: tag.uid, tapCounter: tag.tapCounter, fresh: tag.fresh, verdict }
}

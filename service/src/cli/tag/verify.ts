/** `touchstone tag verify` verifies a tap as GET /api/verify does; `tag doctor` names the mistake in one that does not verify (spec §4.4). */
import type { Command } from 'commander'
import { argument, defineCommand, inSession } from '../session/command.ts'
import { chainOf, CommandError, retryChain, type RunWork, type Session } from '../session/session.ts'
import { parseHex } from '../../lib/bytes.ts'
import { diagnose, type Diagnosis } from '../../tap/provisioning/doctor.ts'
import type { TapOutcome } from '../../tap/resolve-tap.ts'

type Resolved = Extract<TapOutcome, { kind: 'resolved' }>

export function verifyTagCommand(run: RunWork): Command {
  return defineCommand(
    'verify',
    'Verifies a tap and shows the item it is bound to. This uses the tap up, as opening it would.',
    {
      notes: `The tap counts as used from now on: within the window (TAP_WINDOW_SECONDS) it passes again, afterwards it is a replay for
ever. To look at an address without using it: touchstone tag doctor. Exit code 0 when it verifies, 1 when not.`,
      examples: ['touchstone tag verify "$(touchstone tag emulate --tap)"'],
    },
  )
    .argument('<url>', 'address that the tag gave, in quotes', argument.tapUrl)
    .option('--json', 'print a JSON object')
    .action(inSession(run, verify))
}

async function verify(session: Session, url: string, { json }: { json?: true }): Promise<number> {
  const { io } = session
  const outcome = await resolveTapUrl(session, url)
  if (json === true) io.out(JSON.stringify(toJson(outcome), null, 2))
  else for (const line of outcome.kind === 'resolved' ? format(outcome) : [formatRefusal(outcome)]) io.out(line)
  return outcome.kind === 'resolved' ? 0 : 1
}

/** Resolves the tap of a URL. It is consumed before the chain is read, so that a retry is the same tap. */
export function resolveTapUrl(session: Session, url: string): Promise<TapOutcome> {
  const { resolveTap } = chainOf(session)
  return retryChain(session.io, () => resolveTap(parseTapUrl(url)))
}

/** Parses the two parameters as a tap route does, with every value of a repeated one. */
export function parseTapUrl(url: string): {
  readonly picc: string[]
  readonly cmac: string[]
  readonly hint: string | undefined
} {
  const { searchParams } = new URL(url)
  return {
    picc: searchParams.getAll('picc'),
    cmac: searchParams.getAll('cmac'),
    hint: searchParams.get('b')?.slice(0, 16),
  }
}

/** Parses PICC data and MAC of a URL to bytes, or returns null when they are not there once each. */
export function parseHexPair(url: string): { readonly picc: Uint8Array; readonly cmac: Uint8Array } | null {
  const { picc, cmac } = parseTapUrl(url)
  if (picc.length !== 1 || cmac.length !== 1) return null
  const [piccBytes, cmacBytes] = [parseHex(picc[0] ?? ''), parseHex(cmac[0] ?? '')]
  return piccBytes?.length === 16 && cmacBytes?.length === 8 ? { picc: piccBytes, cmac: cmacBytes } : null
}

/** Formats the reason why a tap resolves to no item. */
export function formatRefusal(outcome: Exclude<TapOutcome, Resolved>): string {
  switch (outcome.kind) {
    case 'malformed':
      return `not verified: ${outcome.error}`
    case 'not_configured':
      return 'not verified: this verifier holds no tag keys (or no TAG_PEPPER).'
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

type DoctorOptions = { readonly uid?: readonly Uint8Array[]; readonly json?: true }

export function doctorCommand(run: RunWork): Command {
  return defineCommand(
    'doctor',
    'Explains why an address of a tag does not verify: keys, roles, derivation, offsets, mirrors, placeholders.',
    {
      notes: `It tries the batches of this data folder, factory keys and published example keys. The tap is not consumed, and no key
and no MAC is shown. Exit code 0 when nothing is wrong, 1 when something is.`,
      examples: ["touchstone tag doctor 'https://verify.example.com/api/verify?picc=…&cmac=…'"],
    },
  )
    .argument('<url>', 'address that the tag gave, in quotes')
    .option('--uid <uids>', 'UIDs it may be, for a tag that hides its own or has its keys swapped', argument.uids)
    .option('--json', 'print a JSON object')
    .action(inSession(run, doctor))
}

async function doctor({ store, io }: Session, url: string, { uid: uids = [], json }: DoctorOptions): Promise<number> {
  if (url.length > 2_048) throw new CommandError('An address has at most 2048 characters.')
  const diagnosis = await diagnose(url, { batches: store.tagKeys.keys.candidates(), uids })
  if (json === true) io.out(JSON.stringify(diagnosis, null, 2))
  else for (const line of formatDiagnosis(diagnosis)) io.out(line)
  return diagnosis.ok ? 0 : 1
}

function formatDiagnosis({
  ok,
  findings,
  uid,
  counter,
  batchId,
  macInput,
  scheme,
  fileKeyNo,
  tagByte,
}: Diagnosis): string[] {
  const facts: readonly (readonly [string, string | number | null])[] = [
    ['uid', uid],
    ['counter', counter],
    ['batch', batchId],
    ['tag byte', tagByte],
    ['mac input', macInput],
    ['derivation', scheme],
    ['file key slot', fileKeyNo],
  ]
  return [
    ...(ok ? ['Nothing is wrong with this address: it verifies once, unless it was used before.'] : []),
    ...findings.map(({ text, code }) => `${text} [${code}]`),
    ...facts.flatMap(([name, value]) => (value === null ? [] : [`  ${name.padEnd(14)} ${value}`])),
  ]
}

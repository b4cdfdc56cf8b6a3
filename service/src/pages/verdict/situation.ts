/**
 * A situation is the result of tap and record, for a buyer of new or used goods, and an owner. It has one colour, one
 * headline and one sentence for each of the three. Colour is earned: only a chip that has just proved itself is green or blue.
 */
import type { LifecycleState } from '@touchstone/verdict'
import { reportNames } from '../../domain/registry-event.ts'
import type { Texts } from '../languages.ts'

/** A situation without words of its own is a `MixedSituation`. */
export type Situation = keyof Texts['situations'] | MixedSituation
export const roles = ['new', 'second', 'mine'] as const
export type ViewerRole = (typeof roles)[number]

/** `go`: proven. `own`: proven, and it has an owner. `hold`: proven, but the visitor should wait. `stop`: a reason not to buy. `none`: no proof. */
export const tones = ['go', 'own', 'hold', 'stop', 'none'] as const
export type Tone = (typeof tones)[number]

/** The picture: in colour, as a drawing, as a drawing on red, or none. */
export type Stage = 'proven' | 'record' | 'stop' | 'empty'

/** Kinds of report, the gravest first; REPORTED stands for a flag without a known reason. */
const reportKinds = [...reportNames, 'REPORTED'] as const
export type ReportKind = (typeof reportKinds)[number]

type Look = {
  readonly stage: Stage
  /** The role that is chosen until the visitor chooses. */
  readonly role: ViewerRole
  readonly tone: Tone | Readonly<Record<ViewerRole, Tone>>
}

const looks: Readonly<Record<Situation, Look>> = {
  released: { stage: 'proven', role: 'new', tone: { new: 'go', second: 'hold', mine: 'go' } },
  handled: { stage: 'proven', role: 'new', tone: { new: 'hold', second: 'hold', mine: 'go' } },
  returned: { stage: 'proven', role: 'new', tone: { new: 'hold', second: 'hold', mine: 'go' } },
  claimed: { stage: 'proven', role: 'second', tone: { new: 'hold', second: 'own', mine: 'go' } },
  fresh: { stage: 'proven', role: 'second', tone: { new: 'hold', second: 'hold', mine: 'go' } },
  bound: { stage: 'proven', role: 'new', tone: 'hold' },
  undescribed: { stage: 'empty', role: 'new', tone: 'hold' },
  unread: { stage: 'empty', role: 'new', tone: 'hold' },
  stolen: { stage: 'stop', role: 'second', tone: 'stop' },
  confirmed: { stage: 'stop', role: 'second', tone: 'stop' },
  lost: { stage: 'stop', role: 'mine', tone: 'stop' },
  recall: { stage: 'stop', role: 'mine', tone: 'stop' },
  investigation: { stage: 'stop', role: 'new', tone: 'stop' },
  reported: { stage: 'stop', role: 'second', tone: 'stop' },
  opened: { stage: 'stop', role: 'new', tone: 'stop' },
  recycled: { stage: 'record', role: 'second', tone: 'hold' },
  closed: { stage: 'stop', role: 'second', tone: 'stop' },
  closedConfirmed: { stage: 'stop', role: 'second', tone: 'stop' },
  closedStolen: { stage: 'stop', role: 'second', tone: 'stop' },
  closedLost: { stage: 'stop', role: 'second', tone: 'stop' },
  untapped: { stage: 'record', role: 'new', tone: 'none' },
  chipless: { stage: 'record', role: 'new', tone: 'none' },
  replayed: { stage: 'record', role: 'new', tone: 'none' },
  incomplete: { stage: 'record', role: 'new', tone: 'none' },
  counterfeit: { stage: 'empty', role: 'new', tone: 'stop' },
  unbound: { stage: 'empty', role: 'new', tone: 'hold' },
  other: { stage: 'empty', role: 'new', tone: 'stop' },
  chain: { stage: 'empty', role: 'new', tone: 'none' },
  kept: { stage: 'empty', role: 'new', tone: 'none' },
}

/** The situation whose words a role without words of its own takes. */
const wordsOf: Readonly<Partial<Record<Situation, Situation>>> = { handled: 'released', fresh: 'claimed' }

/** Each role of a mixed situation takes the words of another one. A closed record still warns a buyer of a theft. */
const mixed = {
  closedConfirmed: { new: 'confirmed', second: 'confirmed', mine: 'closed' },
  closedStolen: { new: 'stolen', second: 'stolen', mine: 'closed' },
  closedLost: { new: 'lost', second: 'lost', mine: 'closed' },
} as const
type MixedSituation = keyof typeof mixed

type Words = {
  readonly word: string
  readonly say: string
  readonly title: string
  readonly steps: readonly string[]
}

/** Words and tone of roles that see the same. */
export type Variant = Words & { readonly roles: readonly ViewerRole[]; readonly tone: Tone }

export function stageOf(situation: Situation): Stage {
  return looks[situation].stage
}

/** Lists what the roles see, the default first; roles that see the same are one. A buyer waits where the situation is in doubt. */
export function variantsOf(texts: Texts, situation: Situation, inDoubt = false): readonly Variant[] {
  const { role: first, tone } = looks[situation]
  const variants: Variant[] = []
  for (const role of roles) {
    const words = wordsFor(texts.situations, situation, role)
    const usual = typeof tone === 'string' ? tone : tone[role]
    const own = inDoubt && role !== 'mine' && (usual === 'go' || usual === 'own') ? 'hold' : usual
    const at = variants.findIndex((one) => one.title === words.title && one.say === words.say && one.tone === own)
    const same = variants[at]
    if (same === undefined) variants.push({ ...words, tone: own, roles: [role] })
    else variants[at] = { ...same, roles: [...same.roles, role] }
  }
  return variants.toSorted((left, right) => Number(right.roles.includes(first)) - Number(left.roles.includes(first)))
}

/** Returns the role that counts until the visitor chooses. */
export function defaultRole(situation: Situation): ViewerRole {
  return looks[situation].role
}

/** A role without words of its own has those of the situation behind it, else those of the first role. */
function wordsFor(situations: Texts['situations'], situation: Situation, role: ViewerRole): Words {
  if (isMixed(situation)) return wordsFor(situations, mixed[situation][role], role)
  const own: Partial<Record<ViewerRole, Words>> = situations[situation]
  const behind = wordsOf[situation]
  const words = own[role] ?? (behind === undefined ? own.new : wordsFor(situations, behind, role))
  return words as Words
}

function isMixed(situation: Situation): situation is MixedSituation {
  return situation in mixed
}

/** A new item that was tapped more often than this was in other hands. */
const manyTaps = 50
/** Days after a claim in which another sale is soon. */
const freshDays = 14

export type SituationFacts = {
  readonly tap:
    | { readonly kind: 'tapped'; readonly counter: number }
    | { readonly kind: 'untapped' | 'incomplete' | 'replayed' }
  readonly state: LifecycleState
  readonly flagged: boolean
  readonly reports: readonly ReportKind[]
  /** The tag reports an opened seal. */
  readonly tampered: boolean
  /** The record says what the item is; null where its text could not be read. */
  readonly described: boolean | null
  /** Unix seconds of the last claim, if it is known. */
  readonly claimedAt: number | null
  /** Unix seconds of the record's last change. No claim is later. */
  readonly changedAt: number
  /** An owner gave the item back for resale; null where that is not known. */
  readonly returned: boolean | null
  /** Unix seconds. */
  readonly now: number
}

const ofReport: Readonly<Record<ReportKind, Situation>> = {
  STOLEN_CONFIRMED: 'confirmed',
  STOLEN: 'stolen',
  RECALL: 'recall',
  INVESTIGATION: 'investigation',
  LOST: 'lost',
  REPORTED: 'reported',
}

const closedBy: Readonly<Partial<Record<ReportKind, Situation>>> = {
  STOLEN_CONFIRMED: 'closedConfirmed',
  STOLEN: 'closedStolen',
  LOST: 'closedLost',
}

/** Decides the situation of a record. A report comes first, then the tap, then the state. The report of a recycled item stays for ever. */
export function situationOf(facts: SituationFacts): Situation {
  const { tap, state, flagged, tampered, described, claimedAt, returned, now } = facts
  const [report] = sortedReports(facts)
  if (state === 'RECYCLED' && flagged) return (report && closedBy[report]) ?? 'closed'
  if (report !== undefined) return ofReport[report]
  if (flagged) return 'reported'
  if (tap.kind === 'untapped' && state === 'MINTED') return 'chipless'
  if (tap.kind !== 'tapped') return tap.kind
  if (state === 'RECYCLED') return 'recycled'
  if (tampered) return 'opened'
  if (state !== 'CLAIMED' && state !== 'ACTIVATED') return 'bound'
  if (described === null) return 'unread'
  if (!described) return 'undescribed'
  if (state === 'CLAIMED') return claimedAt !== null && isFresh(claimedAt, now) ? 'fresh' : 'claimed'
  if (returned === true) return 'returned'
  return tap.counter > manyTaps ? 'handled' : 'released'
}

/** Returns whether the changes of state, which are not known, could make the situation another one. */
export function isDoubtful(facts: SituationFacts): boolean {
  const { claimedAt, changedAt, returned, now } = facts
  const situation = situationOf(facts)
  if (situation === 'claimed') return claimedAt === null && isFresh(changedAt, now)
  return returned === null && (situation === 'released' || situation === 'handled')
}

function isFresh(at: number, now: number): boolean {
  return now - at < freshDays * 86_400
}

/** Returns the reports, the gravest first. */
export function sortedReports({ reports }: Pick<SituationFacts, 'reports'>): readonly ReportKind[] {
  return reportKinds.filter((kind) => reports.includes(kind))
}

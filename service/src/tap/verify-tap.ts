/**
 * Verifies a tap from its two query parameters (spec §4.4, §5, §7). The order of checks is fixed: parameters, configured, cryptography,
 * replay. A tap is consumed also when the chain cannot be read, so that the retry after a 502 is the same tap.
 */
import type { Authenticate } from './sun/authenticate.ts'
import { traced } from '../lib/async/span.ts'
import { parseHex } from '../lib/bytes.ts'
import { isDatabaseUnavailable } from '../lib/errors.ts'
import { toHex } from './bytes.ts'
import type { AnomalyKind, ReplayLedger, LedgerAnswer, TappedProduct } from './replay-ledger.ts'
import type { KeyRing } from './keys/batch.ts'
import type { BindToken, TapBinding, TapChallenge } from './tap-tokens.ts'
import type { TapPresentation, TapRecordOutcome } from './log/recorder.ts'
import type { CounterfeitReason } from './sun/sun.ts'
import type { TagHash } from './tag-hash.ts'

/** A query parameter as received: missing, once, or several times. */
type TapParameter = string | readonly string[] | undefined

export type TapRequest = Readonly<{
  picc: TapParameter
  cmac: TapParameter
  /** The batch's hint in the link (parameter `b`). It orders the search and proves nothing. */
  hint?: string | undefined
  /** Seconds until this client, which sent too many failed cryptograms, may cause a search among all batches again. */
  searchAfterSeconds?: number | undefined
  /** The client's bind tokens, one for each of its taps, and its token of TAP_CHALLENGE. */
  bindTokens?: readonly string[] | undefined
  challengeToken?: string | undefined
  /** The country of the client, in two capitals. */
  country?: string | undefined
  /** False: the tap is judged and stays unused, and no token is made. Default: true. */
  consume?: boolean
}>

/**
 * `uid` is 14 upper-case hex digits. `formerTagHash` is present while TAG_PEPPER is replaced. `bindToken` is for a cookie, on a fresh tap
 * where clients are bound.
 */
export type TappedTag = Readonly<{
  kind: 'tapped'
  uid: string
  tapCounter: number
  epoch: number
  batchId: string
  tagHash: `0x${string}`
  formerTagHash?: `0x${string}`
  /** Seconds since the tap was accepted, by the clock of the database. */
  ageSeconds: number
  fresh: boolean
  /** The client presented the tap first, by its bind token. For a few seconds every client counts as the first. */
  isFirstClient: boolean
  /** The tap is announced for its product, by this request or before. */
  isAnnounced: boolean
  bindToken?: BindToken
}>

/** `reason` and `batchId` are for the log and metrics only. `challenge` demands a second tap with this token within `seconds`. */
export type TapResult =
  | { readonly kind: 'malformed'; readonly error: string }
  /** No keys are here, or none that fit, while a batch of the database has others or none here. No verdict. */
  | { readonly kind: 'not_configured' }
  /** The batch was not found among the likely ones, and no search is allowed now. No verdict: 429 for this client, 503 for all. */
  | { readonly kind: 'busy'; readonly status: 429 | 503; readonly seconds: number }
  | { readonly kind: 'counterfeit'; readonly reason: CounterfeitReason; readonly batchId?: string | undefined }
  | { readonly kind: 'replayed' }
  | { readonly kind: 'challenge'; readonly token: string; readonly seconds: number; readonly bindToken?: BindToken }
  | TappedTag

/** An observation for the operator. It holds no UID, so it may be logged. */
export type TapAnomaly = Readonly<{
  kind: AnomalyKind
  batchId: string
  counter: number
  lastCounter: number | null
}>

export type VerifyTapOptions = Readonly<{
  keys: Pick<KeyRing, 'likely'>
  /** Returns the ids of batches whose keys are not here. Throws DATABASE_UNAVAILABLE where it cannot be known. Default: none. */
  missing?: (() => Promise<readonly string[]>) | undefined
  authenticate: Authenticate
  ledger: ReplayLedger
  tagHash: TagHash
  /** The commitment with TAG_PEPPER_PREVIOUS. */
  formerTagHash?: TagHash | undefined
  /** Makes bind tokens; left out: no client but that of a fresh tap is known as the first. */
  binding?: TapBinding | undefined
  /** TAP_BIND: only the first client may repeat a tap. Default: every client. */
  mustBind?: boolean
  challenge?: TapChallenge | undefined
  onAnomaly?: ((anomaly: TapAnomaly) => void) | undefined
  /** Gets every tap that is consumed, and every cryptogram that is none. */
  record?: ((presentation: TapPresentation) => void) | undefined
}>

/**
 * `productOf` returns the product of a tag, null where it is unbound or the chain cannot be read. It never throws. It is called for a genuine
 * tap before that is consumed, so that one commit accepts and announces it.
 */
export type VerifyTap = (request: TapRequest, productOf?: ProductOf) => Promise<TapResult>
export type ProductOf = (tag: Pick<TappedTag, 'tagHash' | 'formerTagHash'>) => Promise<TappedProduct | null>

/** Creates the verification. It throws what the ledger, `missing` and a remote key store throw. */
export function createVerifyTap(options: VerifyTapOptions): VerifyTap {
  const {
    keys,
    authenticate,
    ledger,
    tagHash,
    formerTagHash,
    binding,
    mustBind = false,
    challenge,
    onAnomaly,
    record,
    missing = async () => [],
  } = options
  return async (request, productOf = async () => null) => {
    const { consume = true, country = null, hint, searchAfterSeconds } = request
    const picc = parseParameter('picc', request.picc, 32)
    if (!(picc instanceof Uint8Array)) return picc
    const cmac = parseParameter('cmac', request.cmac, 16)
    if (!(cmac instanceof Uint8Array)) return cmac
    const lacking = await missing().catch(ifDatabaseAway)
    if (keys.likely().length === 0) return { kind: 'not_configured' }

    const found = await traced({ name: 'tap cryptogram' }, () =>
      authenticate(picc, cmac, { hint, maySearch: searchAfterSeconds === undefined }),
    )
    if (!found.genuine) {
      if (found.reason === 'not_searched')
        return { kind: 'busy', status: searchAfterSeconds === undefined ? 503 : 429, seconds: searchAfterSeconds ?? 1 }
      if (unexplained.has(found.reason)) {
        if (lacking instanceof Error) throw lacking
        if (lacking.length > 0) return { kind: 'not_configured' }
      }
      if (consume) record?.({ tagHash: null, counter: null, jumpFrom: null, country, outcome: 'COUNTERFEIT_SUSPECTED' })
      return { kind: 'counterfeit', reason: found.reason, batchId: found.batchId }
    }
    const { uid, counter, batch } = found
    const tap = { uid, counter, epoch: batch.epoch, batchId: batch.id, picc }

    const hash = tagHash(uid)
    const former = formerTagHash === undefined ? {} : { formerTagHash: formerTagHash(uid) }
    const isAnswered = challenge === undefined || challenge.isAnswered(tap, request.challengeToken)
    const product = consume && isAnswered ? await productOf({ tagHash: hash, ...former }) : null

    const { outcome, anomalies, lastCounter, ageSeconds, isAnnounced } = await traced({ name: 'tap ledger' }, () =>
      consume ? ledger.consume(tap, product) : ledger.judge(tap),
    )
    for (const kind of anomalies) onAnomaly?.({ kind, batchId: batch.id, counter, lastCounter })
    const hasToken = outcome === 'SAME_TAP' && binding?.isValid(tap, request.bindTokens ?? []) === true
    const isBound = outcome !== 'SAME_TAP' || !mustBind || hasToken
    if (consume) {
      const jumpFrom = anomalies.includes('gap') ? lastCounter : null
      const recorded = isBound ? recordedOutcome(outcome, anomalies) : 'REPLAYED'
      record?.({ tagHash: hash, ...former, counter, jumpFrom, country, outcome: recorded })
    }
    if (outcome === 'REVOKED') return { kind: 'counterfeit', reason: 'revoked_batch', batchId: batch.id }
    if (outcome === 'OTHER_BATCH') return { kind: 'counterfeit', reason: 'other_batch', batchId: batch.id }
    if (outcome === 'REPLAY' || !isBound) return { kind: 'replayed' }

    const fresh = outcome === 'FRESH'
    const isFirstClient = fresh || hasToken || ageSeconds < sameMomentSeconds
    const bound =
      binding !== undefined && isFirstClient && !hasToken && consume ? { bindToken: binding.issue(tap) } : {}
    if (challenge !== undefined && !isAnswered) return { kind: 'challenge', ...challenge.issue(tap), ...bound }
    return {
      kind: 'tapped',
      uid: toHex(uid),
      tapCounter: counter,
      epoch: batch.epoch,
      batchId: batch.id,
      tagHash: hash,
      ...former,
      ageSeconds,
      fresh,
      isFirstClient,
      isAnnounced,
      ...bound,
    }
  }
}

/**
 * Seconds in which all that present a tap count as one client. A browser may open a link twice before it has the cookie, and a scanner of
 * its machine may be faster.
 */
const sameMomentSeconds = 10

/** No key that was tried made the tap. A key that fits by chance shows the latter two. */
const unexplained: ReadonlySet<CounterfeitReason> = new Set(['unknown_batch', 'bad_cmac', 'bad_picc_tag'])

/** Keeps the fault for taps that no key here fits: the ledger decides about all others. */
function ifDatabaseAway(fault: unknown): Error {
  if (fault instanceof Error && isDatabaseUnavailable(fault)) return fault
  throw fault
}

/** A revoked or wrong batch contradicts a chip that is genuine, and so does a known counter under other bytes. */
function recordedOutcome(outcome: LedgerAnswer['outcome'], anomalies: readonly AnomalyKind[]): TapRecordOutcome {
  if (outcome === 'REVOKED' || outcome === 'OTHER_BATCH' || anomalies.includes('other_picc'))
    return 'COUNTERFEIT_SUSPECTED'
  return ({ FRESH: 'FRESH', SAME_TAP: 'REPEATED', REPLAY: 'REPLAYED' } as const)[outcome]
}

/** Parses a parameter that is present once with exactly `digits` hex digits of either case. */
function parseParameter(name: string, value: TapParameter, digits: number): Uint8Array | TapResult {
  const values = typeof value === 'string' ? [value] : (value ?? [])
  const [text] = values
  if (text === undefined || text === '')
    return malformed('The picc or cmac parameters are missing, or the query is too long.')
  if (values.length > 1) return malformed(`The ${name} parameter is given more than once.`)
  const bytes = text.length === digits ? parseHex(text) : null
  return bytes ?? malformed(`The ${name} parameter must be ${digits} hex digits.`)
}

function malformed(error: string): TapResult {
  return { kind: 'malformed', error }
}

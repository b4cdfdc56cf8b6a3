/**
 * Two optional stiffer rules for taps (spec §4.4). TAP_BIND: only the client that presented a tap first may repeat it.
 * TAP_CHALLENGE: a second tap must follow the first, the only answer to addresses that were harvested from a chip in advance.
 * Both are stateless: a token is an HMAC over the tap, and the ledger keeps every tap from counting twice.
 */
import { createHmac } from 'node:crypto'
import { littleEndian, sameBytes, textBytes } from './bytes.ts'

/** The tap that a token speaks of. */
type TokenTap = Readonly<{ uid: Uint8Array; epoch: number; counter: number }>

export type TapBinding = Readonly<{
  /** For the answer to a FRESH tap; goes into the cookie `bindCookieName`. */
  token: (tap: TokenTap) => string
  holds: (tap: TokenTap, presented: string | undefined) => boolean
}>

/** `__Host-` ties the cookie to this host, to TLS and to the path `/`. */
export const bindCookieName = '__Host-tap'

/** `secret` has at least 32 bytes (else `RangeError`) and is the same on every instance. */
export function createTapBinding({ secret }: { secret: Uint8Array }): TapBinding {
  const seal = sealer(secret, 'touchstone tap binding')
  return {
    token: (tap) => seal(tap, 0).toString('base64url'),
    holds: (tap, presented) => presented !== undefined && isSeal(seal(tap, 0), presented),
  }
}

export type TapChallenge = Readonly<{
  /** A token that asks for another tap of the same chip; `seconds` is how long it holds. */
  issue: (tap: TokenTap) => { token: string; seconds: number }
  /** Whether `tap` answers the challenge: in time, and 1 to 8 counts after the first tap. */
  answers: (tap: TokenTap, presented: string | undefined) => boolean
}>

/** `secret` as for the binding; `now` in milliseconds. */
export function createTapChallenge({
  secret,
  now = Date.now,
}: {
  secret: Uint8Array
  now?: () => number
}): TapChallenge {
  const seal = sealer(secret, 'touchstone tap challenge')
  return {
    issue: (tap) => {
      const until = Math.floor(now() / 1000) + challengeSeconds
      return { token: `${tap.counter}.${until}.${seal(tap, until).toString('base64url')}`, seconds: challengeSeconds }
    },
    answers: (tap, presented) => {
      const [, first, until, mac] = /^(\d{1,8})\.(\d{1,12})\.([\w-]{43})$/.exec(presented ?? '') ?? []
      if (first === undefined || until === undefined || mac === undefined) return false
      const counts = tap.counter - Number(first)
      if (counts < 1 || counts > challengeCounts || now() / 1000 > Number(until)) return false
      return isSeal(seal({ ...tap, counter: Number(first) }, Number(until)), mac)
    },
  }
}

const challengeSeconds = 60
const challengeCounts = 8

function sealer(secret: Uint8Array, purpose: string): (tap: TokenTap, until: number) => Buffer {
  if (secret.length < 32) throw new RangeError('A token secret has at least 32 bytes.')
  const key = createHmac('sha256', secret).update(textBytes(purpose)).digest()
  return ({ uid, epoch, counter }, until) =>
    createHmac('sha256', key)
      .update(uid)
      .update(littleEndian(epoch, 4))
      .update(littleEndian(counter, 4))
      .update(littleEndian(until, 6))
      .digest()
}

function isSeal(mac: Uint8Array, presented: string): boolean {
  return presented.length === 43 && sameBytes(mac, Buffer.from(presented, 'base64url'))
}

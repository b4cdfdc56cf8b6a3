/**
 * Tap tokens: two optional stricter rules for taps (spec §4.4). Under TAP_BIND only the client that presented a tap first may repeat it.
 * Under TAP_CHALLENGE the next tap must follow within seconds, against an address that was harvested from a chip in advance. Two
 * addresses in a row, harvested after the last tap, still pass: a chip has no clock, so that no verifier can date its taps.
 * Both are stateless: a token is an HMAC over the tap, and the replay ledger keeps every tap from counting twice.
 */
import { createHmac } from 'node:crypto'
import { constantTimeEqual } from '../lib/bytes.ts'
import { littleEndian } from './bytes.ts'

/** The tap that a token is about. */
type TokenTap = Readonly<{ uid: Uint8Array; epoch: number; counter: number }>

/** The token of a tap, for the client that presented it first. `seconds`: the time for which the tap may be repeated. */
export type BindToken = Readonly<{ token: string; seconds: number }>

export type TapBinding = Readonly<{
  /** Issues the token for the response to a FRESH tap, sent in a cookie. */
  issue: (tap: TokenTap) => BindToken
  /** Returns whether one of the client's tokens is that of the tap. */
  isValid: (tap: TokenTap, presented: readonly string[]) => boolean
}>

/**
 * Creates the binding. `secret` is the same on every instance; a `RangeError` is thrown below 32 bytes. `windowSeconds` is the time for
 * which a tap may be repeated.
 */
export function createTapBinding({ secret, windowSeconds }: { secret: Uint8Array; windowSeconds: number }): TapBinding {
  const mac = createMac(secret, 'touchstone tap binding')
  return {
    issue: (tap) => ({ token: mac(tap, 0).toString('base64url'), seconds: windowSeconds }),
    isValid: (tap, presented) => {
      const own = mac(tap, 0)
      return presented.some((token) => isMac(own, token))
    },
  }
}

export type TapChallenge = Readonly<{
  /** Issues a token that asks for another tap of the same chip within `seconds`. */
  issue: (tap: TokenTap) => { token: string; seconds: number }
  /** Returns whether `tap` answers the challenge: in time, and the next count after the first tap. */
  isAnswered: (tap: TokenTap, presented: string | undefined) => boolean
}>

/** Creates the challenge. `secret` is as for the binding; `now` is in unix milliseconds. */
export function createTapChallenge({
  secret,
  now = Date.now,
}: {
  secret: Uint8Array
  now?: () => number
}): TapChallenge {
  const mac = createMac(secret, 'touchstone tap challenge')
  return {
    issue: (tap) => {
      const until = Math.floor(now() / 1000) + challengeSeconds
      return { token: `${tap.counter}.${until}.${mac(tap, until).toString('base64url')}`, seconds: challengeSeconds }
    },
    isAnswered: (tap, presented) => {
      const [, first, until, text] = /^(\d{1,8})\.(\d{1,12})\.([\w-]{43})$/.exec(presented ?? '') ?? []
      if (first === undefined || until === undefined || text === undefined) return false
      if (tap.counter !== Number(first) + 1 || now() / 1000 > Number(until)) return false
      return isMac(mac({ ...tap, counter: Number(first) }, Number(until)), text)
    },
  }
}

const challengeSeconds = 30

function createMac(secret: Uint8Array, purpose: string): (tap: TokenTap, until: number) => Buffer {
  if (secret.length < 32) throw new RangeError('A token secret has at least 32 bytes.')
  const key = createHmac('sha256', secret).update(purpose).digest()
  return ({ uid, epoch, counter }, until) =>
    createHmac('sha256', key)
      .update(uid)
      .update(littleEndian(epoch, 4))
      .update(littleEndian(counter, 4))
      .update(littleEndian(until, 6))
      .digest()
}

function isMac(mac: Uint8Array, presented: string): boolean {
  return presented.length === 43 && constantTimeEqual(mac, Buffer.from(presented, 'base64url'))
}

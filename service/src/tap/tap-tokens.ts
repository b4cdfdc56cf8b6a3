/**
 * Tap tokens: two optional stricter rules for taps (spec §4.4). Under TAP_BIND only the client that presented a tap first may repeat it.
 * Under TAP_CHALLENGE the next tap must follow within seconds, against an address that was harvested from a chip in advance. Two
 * addresses in a row, harvested after the last tap, still pass: a chip has no clock, so that no verifier can date its taps.
 * Both are stateless: a token is an HMAC over the tap, and the replay ledger keeps every tap from counting twice.
 */
import { createHash, createHmac } from 'node:crypto'
import { constantTimeEqual } from '../lib/bytes.ts'
import { littleEndian } from './bytes.ts'

/** The tap that a token is about. */
type TokenTap = Readonly<{ uid: Uint8Array; epoch: number; counter: number }>

/** The token of a tap, for the client that presented it first. `seconds`: the time for which the tap may be repeated. */
export type BindToken = Readonly<{ token: string; seconds: number }>

/**
 * Secrets of tokens and tickets, the same on every instance that can verify a tap. `secret` makes them. Those that `previousSecret` made are
 * accepted, too.
 */
export type TapSecrets = Readonly<{ secret: Uint8Array; previousSecret?: Uint8Array | null }>

/** Derives the secrets from TAG_KEK and TAG_KEK_PREVIOUS. */
export function tapSecrets({
  kek,
  previousKek = null,
}: {
  readonly kek: Uint8Array | null
  readonly previousKek?: Uint8Array | null
}): TapSecrets {
  const secretOf = (key: Uint8Array | null) =>
    createHash('sha256')
      .update('touchstone tap tokens')
      .update(key ?? '')
      .digest()
  return { secret: secretOf(kek), previousSecret: previousKek === null ? null : secretOf(previousKek) }
}

/** Derives the keys for a purpose; the first one makes tokens. Throws a `RangeError` for a secret below 32 bytes. */
export function tokenKeys({ secret, previousSecret = null }: TapSecrets, purpose: string): [Buffer, ...Buffer[]] {
  const keyOf = (of: Uint8Array) => {
    if (of.length < 32) throw new RangeError('A token secret has at least 32 bytes.')
    return createHmac('sha256', of).update(purpose).digest()
  }
  return [keyOf(secret), ...(previousSecret === null ? [] : [keyOf(previousSecret)])]
}

export type TapBinding = ReturnType<typeof createTapBinding>

/** Creates the binding. `windowSeconds` is the time for which a tap may be repeated. */
export function createTapBinding({ windowSeconds, ...secrets }: TapSecrets & { windowSeconds: number }) {
  const keys = tokenKeys(secrets, 'touchstone tap binding')
  return {
    /** Issues the token for the response to a FRESH tap, sent in a cookie. */
    issue: (tap: TokenTap): BindToken => ({
      token: macOf(keys[0], tap, 0).toString('base64url'),
      seconds: windowSeconds,
    }),
    /** Returns whether one of the client's tokens is that of the tap. */
    isValid: (tap: TokenTap, presented: readonly string[]): boolean =>
      keys.some((key) => {
        const mac = macOf(key, tap, 0)
        return presented.some((token) => isMac(mac, token))
      }),
  }
}

export type TapChallenge = ReturnType<typeof createTapChallenge>

/** Creates the challenge. `now` is in unix milliseconds. */
export function createTapChallenge({ now = Date.now, ...secrets }: TapSecrets & { now?: () => number }) {
  const keys = tokenKeys(secrets, 'touchstone tap challenge')
  return {
    /** Issues a token that requires another tap of the same chip within `seconds`. */
    issue: (tap: TokenTap) => {
      const until = Math.floor(now() / 1000) + challengeSeconds
      return {
        token: `${tap.counter}.${until}.${macOf(keys[0], tap, until).toString('base64url')}`,
        seconds: challengeSeconds,
      }
    },
    /** Returns whether `tap` answers the challenge: in time, and the next count after the first tap. */
    isAnswered: (tap: TokenTap, presented: string | undefined): boolean => {
      const [, first, until, text] = /^(\d{1,8})\.(\d{1,12})\.([\w-]{43})$/.exec(presented ?? '') ?? []
      if (first === undefined || until === undefined || text === undefined) return false
      if (tap.counter !== Number(first) + 1 || now() / 1000 > Number(until)) return false
      const before = { ...tap, counter: Number(first) }
      return keys.some((key) => isMac(macOf(key, before, Number(until)), text))
    },
  }
}

const challengeSeconds = 30

function macOf(key: Uint8Array, { uid, epoch, counter }: TokenTap, until: number): Buffer {
  return createHmac('sha256', key)
    .update(uid)
    .update(littleEndian(epoch, 4))
    .update(littleEndian(counter, 4))
    .update(littleEndian(until, 6))
    .digest()
}

function isMac(mac: Uint8Array, presented: string): boolean {
  return presented.length === 43 && constantTimeEqual(mac, Buffer.from(presented, 'base64url'))
}

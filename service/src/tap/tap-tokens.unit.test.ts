import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createTapBinding, createTapChallenge, tapSecrets } from './tap-tokens.ts'
import { newUid } from '../../test/support/tap/tags.ts'

const secret = new Uint8Array(32).fill(3)
const tap = { uid: newUid(), epoch: 0, counter: 10 }

describe('a tap binding', () => {
  const binding = createTapBinding({ secret, windowSeconds: 300 })

  it('holds for the tap it was made for, on every instance', () => {
    const { token, seconds } = binding.issue(tap)
    assert.equal(seconds, 300)
    const [another, foreign] = [secret, new Uint8Array(32).fill(4)].map((of) =>
      createTapBinding({ secret: of, windowSeconds: 300 }),
    )
    assert.equal(another?.isValid(tap, [token]), true)
    assert.equal(binding.isValid(tap, ['x', binding.issue({ ...tap, counter: 11 }).token, token]), true)
    for (const other of [
      { ...tap, counter: 11 },
      { ...tap, epoch: 1 },
      { ...tap, uid: newUid() },
    ])
      assert.equal(binding.isValid(other, [token]), false)
    assert.equal(foreign?.isValid(tap, [token]), false)
    assert.equal(binding.isValid(tap, []), false)
    for (const wrong of ['', 'x', `${token}A`, token.slice(1)]) assert.equal(binding.isValid(tap, [wrong]), false)
  })

  it('needs a secret of 32 bytes', () => {
    assert.throws(() => createTapBinding({ secret: new Uint8Array(31), windowSeconds: 300 }), RangeError)
  })
})

describe('tokens made under a former TAG_KEK', () => {
  const [former, next, foreign] = [1, 2, 3].map((byte) => new Uint8Array(32).fill(byte)) as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ]
  const keks = [{ kek: former }, { kek: next, previousKek: former }, { kek: foreign }] as const

  it('are accepted as long as TAG_KEK_PREVIOUS names it', () => {
    const [old, both, others] = keks.map((kek) => {
      const secrets = tapSecrets(kek)
      return { binding: createTapBinding({ ...secrets, windowSeconds: 300 }), challenge: createTapChallenge(secrets) }
    })
    assert.ok(old && both && others)
    for (const [from, at, isAccepted] of [
      [old, both, true],
      [both, both, true],
      [both, old, false],
      [others, both, false],
    ] as const) {
      assert.equal(at.binding.isValid(tap, [from.binding.issue(tap).token]), isAccepted)
      assert.equal(at.challenge.isAnswered({ ...tap, counter: 11 }, from.challenge.issue(tap).token), isAccepted)
    }
  })
})

describe('a tap challenge', () => {
  let time = Date.parse('2026-01-01T00:00:00Z')
  const challenge = createTapChallenge({ secret, now: () => time })
  const { token, seconds } = challenge.issue(tap)

  it('is answered by the next count of the same epoch of the same chip, and no other', () => {
    for (let counter = 0; counter < 30; counter++) {
      assert.equal(challenge.isAnswered({ ...tap, counter }, token), counter === 11, `counter ${counter}`)
    }
    assert.equal(challenge.isAnswered({ ...tap, counter: 11, epoch: 1 }, token), false)
    assert.equal(challenge.isAnswered({ ...tap, counter: 11, uid: newUid() }, token), false)
  })

  it('cannot be altered', () => {
    const [counter, until, mac] = token.split('.')
    const next = { ...tap, counter: 11 }
    assert.equal(challenge.isAnswered({ ...tap, counter: 13 }, `12.${until}.${mac}`), false)
    assert.equal(challenge.isAnswered(next, `${counter}.${Number(until) + 1}.${mac}`), false)
    for (const wrong of [undefined, '', '10', `${token}A`, '..']) assert.equal(challenge.isAnswered(next, wrong), false)
    const { token: binding } = createTapBinding({ secret, windowSeconds: 300 }).issue(tap)
    assert.equal(challenge.isAnswered(next, `${counter}.0.${binding}`), false)
  })

  it('holds for 30 seconds', () => {
    assert.equal(seconds, 30)
    time += 30_000
    assert.equal(challenge.isAnswered({ ...tap, counter: 11 }, token), true)
    time += 1000
    assert.equal(challenge.isAnswered({ ...tap, counter: 11 }, token), false)
  })
})

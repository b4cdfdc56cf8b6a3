import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { hexToBytes as bytes } from '@noble/hashes/utils.js'
import { createChip, type Chip } from '../../../test/support/tap/chip.ts'
import { newUid, parametersOf, testBatch, testBatches, testTemplate, verifier } from '../../../test/support/tap/tags.ts'
import { embeddedKey } from '../sun/aes.ts'
import { toHex } from '../bytes.ts'
import { deriveTagKeys } from './key-rows.ts'
import { ChipError, personalise, type KeyJournal, type KeyProgress, type Transmit } from './personalise.ts'

const zeroKey = '0'.repeat(32)
const onto =
  (chip: Chip): Transmit =>
  (command) =>
    Promise.resolve(chip.transmit(command))

describe('NXP’s own examples, as a chip reads them', () => {
  it('changes file settings', () => {
    const chip = createChip({ uid: newUid() })
    chip.enter({
      transactionId: bytes('9D00C4DF'),
      encryptionKey: bytes('1309C877509E5A215007FF0ED19CA564'),
      macKey: bytes('4C6626F5E72EA694202139295C7A7FC7'),
      counter: 1,
    })
    const answer = chip.transmit(bytes('905F0000190261B6D97903566E84C3AE5274467E89EAD799B7C1A0EF7A0400'))
    assert.equal(toHex(answer.subarray(-2)), '9100')
    assert.equal(chip.settings(), '004000E0000100C1F121200000430000430000')
  })

  it('changes keys 2 and 0', () => {
    const chip = createChip({ uid: newUid() })
    chip.enter({
      transactionId: bytes('7614281A'),
      encryptionKey: bytes('4CF3CB41A22583A61E89B158D252FC53'),
      macKey: bytes('5529860B2FC5FB6154B7F28361D30BF9'),
      counter: 2,
    })
    chip.transmit(
      bytes('90C4000029022CF362B7BF4311FF3BE1DAA295E8C68DE09050560D19B9E16C2393AE9CD1FAC75D0CE20BCD1D06E600'),
    )
    const last = chip.transmit(
      bytes('90C400002900C0EB4DEEFEDDF0B513A03A95A75491818580503190D4D05053FF75668A01D6FDA6610234BDED643200'),
    )
    assert.equal(toHex(last), '9100')
    assert.equal(chip.keys()[2], 'F3847D627727ED3BC9C4CC050489B966')
    assert.equal(chip.keys()[0], '5004BF991F408672B1EF00F08F9E8647')
    assert.deepEqual(chip.versions(), [1, 0, 1, 0, 0])
  })
})

describe('personalisation', () => {
  const batch = testBatch({ id: 'b', epoch: 258 })
  const template = testTemplate(batch)
  const appMaster = Uint8Array.from(randomBytes(16))
  const keysOf = (uid: Uint8Array) => deriveTagKeys(batch, uid, { app: embeddedKey(appMaster) })

  /** A journal, and everything that was sent after which entry. */
  function station() {
    const entries = new Map<string, KeyProgress>()
    const journal: KeyJournal = {
      read: (uid) => Promise.resolve(entries.get(uid) ?? null),
      write: (uid, progress) => Promise.resolve(void entries.set(uid, progress)),
    }
    const make = (transmit: Transmit) =>
      personalise({ transmit, templateOf: async () => template, keysOf, version: batch.epoch % 256, journal })
    return { entries, make }
  }

  async function assertFinished(chip: Chip, uid: Uint8Array, address: string): Promise<void> {
    assert.deepEqual(chip.keys(), (await keysOf(uid)).map(toHex))
    assert.deepEqual(chip.versions(), [2, 2, 2, 2, 2])
    const found = await verifier(await testBatches(batch))(parametersOf(address))
    assert.ok(found.genuine && toHex(found.uid) === toHex(uid) && found.counter > 0)
  }

  it('makes a blank chip a tag whose address verifies, and changes all five keys, key 0 last', async () => {
    const uid = newUid()
    const chip = createChip({ uid })
    const { make, entries } = station()
    const order: string[] = []
    const made = await make((command) => {
      if (command[1] === 0xc4) order.push(`${command[5]}:${entries.get(toHex(uid))?.begun.join('')}`)
      return Promise.resolve(chip.transmit(command))
    })
    assert.equal(toHex(made.uid), toHex(uid))
    assert.deepEqual(order, ['1:1', '2:12', '3:123', '4:1234', '0:12340'], 'written down before it is sent')
    assert.equal(chip.settings(), '004000E0000100C1FF122A0000500000500000')
    await assertFinished(chip, uid, made.address)
  })

  it('begins with the published example of AuthenticateEV2First', async () => {
    const chip = createChip({
      uid: newUid(),
      random: (length) => bytes(length === 16 ? 'B9E2FC789B64BF237CCCAA20EC7E6E48' : '9D00C4DF'),
    })
    const sent: string[] = []
    await station().make((command) => {
      const answer = chip.transmit(command)
      sent.push(`${toHex(command)} ${toHex(answer)}`)
      return Promise.resolve(answer)
    })
    assert.equal(sent[0], '00A4040C07D276000085010100 9000')
    assert.ok(sent.includes('9071000002000000 A04C124213C186F22399D33AC2A3021591AF'))
  })

  it('finishes a chip that was taken away at any moment, whether it had received the command or not', async () => {
    const count = async () => {
      let commands = 0
      const chip = createChip({ uid: newUid() })
      await station().make((command) => Promise.resolve((commands++, chip.transmit(command))))
      return commands
    }
    const total = await count()
    for (let at = 0; at < total; at++) {
      for (const heard of [false, true]) {
        const uid = newUid()
        const chip = createChip({ uid })
        const { make } = station()
        let sent = 0
        const torn = make((command) => {
          if (sent++ < at) return Promise.resolve(chip.transmit(command))
          if (heard) chip.transmit(command)
          return Promise.reject(new Error('the chip is gone'))
        })
        await assert.rejects(torn, /the chip is gone/)
        const { address } = await make(onto(chip))
        await assertFinished(chip, uid, address)
        assert.ok(chip.failures() <= 2, 'few attempts with a wrong key')
      }
    }
  })

  it('leaves a chip alone that is not blank', async () => {
    const { make, entries } = station()
    const chip = createChip({ uid: newUid() })
    await make(onto(chip))
    const before = [chip.keys(), chip.settings()]
    await assert.rejects(station().make(onto(chip)), /is not blank: SDM is on, or a key was changed/)
    assert.deepEqual([chip.keys(), chip.settings()], before)
    const foreign = createChip({ uid: newUid() })
    foreign.enter(
      { transactionId: bytes('00000000'), encryptionKey: bytes(zeroKey), macKey: bytes(zeroKey), counter: 0 },
      { 0: bytes('11'.repeat(16)) },
    )
    await assert.rejects(make(onto(foreign)), /master key; it is not blank/)
    assert.equal(entries.size, 1, 'nothing is written down for it')
  })

  it('leaves a chip alone whose SDM is on under factory keys, and one with another version of a key', async () => {
    const [half, keyed] = [createChip({ uid: newUid() }), createChip({ uid: newUid() })]
    const torn = station().make((command) =>
      command[1] === 0xc4 ? Promise.reject(new Error('the chip is gone')) : Promise.resolve(half.transmit(command)),
    )
    await assert.rejects(torn, /the chip is gone/)
    assert.deepEqual(half.versions(), [0, 0, 0, 0, 0])
    const versioned: Transmit = async (command) =>
      command[1] === 0x64 && command[5] === 4 ? bytes('019100') : keyed.transmit(command)
    for (const transmit of [onto(half), versioned]) await assert.rejects(station().make(transmit), /is not blank: SDM/)
    for (const chip of [half, keyed]) assert.ok(chip.keys().every((key) => key === zeroKey))
  })

  it('rejects an answer that does not carry the chip’s MAC', async () => {
    for (const [code, step] of [
      [0x5f, 'take the file settings'],
      [0xc4, 'take key 1'],
    ] as const) {
      const chip = createChip({ uid: newUid() })
      const forged = station().make((command) => {
        const answer = chip.transmit(command)
        if (command[1] === code) answer[0] = (answer[0] ?? 0) ^ 1
        return Promise.resolve(answer)
      })
      await assert.rejects(forged, { message: `The chip's answer is not genuine (${step}); put it back.` })
    }
  })

  it('says what a chip refuses, at any step, and finishes it when it is put back', async () => {
    let total = 1
    for (let at = 0; at < total; at++) {
      const uid = newUid()
      const chip = createChip({ uid })
      const { make } = station()
      let sent = 0
      const refused = make((command) => Promise.resolve(sent++ === at ? bytes('911E') : chip.transmit(command)))
      await assert.rejects(
        refused,
        (error) => error instanceof ChipError && /^The chip (refused to|takes no|does not open)/.test(error.message),
      )
      await assertFinished(
        chip,
        uid,
        (await make((command) => Promise.resolve((sent++, chip.transmit(command))))).address,
      )
      total = Math.max(total, sent - at - 1)
    }
    assert.ok(total > 20, `${total} steps`)
  })

  it('waits while a chip demands a pause, and sets aside one that demands it for ever', async () => {
    const uid = newUid()
    const chip = createChip({ uid })
    const pauses = [0x71, 0xaf]
    const { address } = await station().make((command) => {
      const isProof = command[1] === 0xaf && command.length > 5
      const isPaused = pauses[0] === command[1] && (command[1] === 0x71 || isProof)
      if (isPaused) pauses.shift()
      return Promise.resolve(isPaused ? bytes('91AD') : chip.transmit(command))
    })
    assert.deepEqual(pauses, [])
    await assertFinished(chip, uid, address)
    const locked = createChip({ uid })
    const endless = station().make((command) =>
      Promise.resolve(command[1] === 0xaf && command.length > 5 ? bytes('91AD') : locked.transmit(command)),
    )
    await assert.rejects(endless, /demands a longer pause; try it again later\.$/)
    assert.deepEqual(
      locked.keys(),
      Array.from({ length: 5 }, () => zeroKey),
    )
  })

  it('sets a chip aside whose answer is too short at any step, without ending the run', async () => {
    const steps: string[] = []
    for (let at = 0; at === steps.length; at++) {
      const chip = createChip({ uid: newUid() })
      let sent = 0
      const cut = station().make((command) => {
        const answer = chip.transmit(command)
        if (sent++ !== at) return Promise.resolve(answer)
        steps.push(toHex(command.subarray(0, 2)))
        return Promise.resolve(answer.length > 4 ? Uint8Array.of(0xaa, 0xbb, ...answer.subarray(-2)) : answer)
      })
      await cut.then(
        ({ uid }) => assert.equal(uid.length, 7),
        (error: unknown) => assert.ok(error instanceof ChipError, `${steps.at(-1)}: ${String(error)}`),
      )
    }
    assert.ok(steps.includes('9071'))
  })
})

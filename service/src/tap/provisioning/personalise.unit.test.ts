import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hexToBytes } from '@noble/hashes/utils.js'
import { cbcDecrypt, cbcEncrypt, cmacOnce } from '../sun/aes.ts'
import { toHex, join, littleEndian } from '../bytes.ts'
import {
  isAnswerValid,
  authenticateFirst,
  authenticateSecond,
  changeFileSettings,
  changeKey,
  crc32nk,
  getKeyVersion,
  nextCommand,
  openSession,
  plainCommands,
  sessionKeys,
  updateBinary,
  type ChipSession,
} from './personalise.ts'
import { oddBytes } from '../sun/sun.ts'

const zeroKey = new Uint8Array(16)
const rndA = hexToBytes('13C5DB8A5930439FC3DEF9A4C675360F')
const sealedRndB = hexToBytes('A04C124213C186F22399D33AC2A30215')
const rndB = hexToBytes('B9E2FC789B64BF237CCCAA20EC7E6E48')

describe('AN12196: AuthenticateEV2First', () => {
  it('asks, and proves the key', () => {
    assert.equal(toHex(authenticateFirst(0)), '9071000002000000')
    assert.deepEqual(cbcDecrypt(zeroKey, zeroKey, sealedRndB), rndB)
    const command = authenticateSecond(zeroKey, rndA, sealedRndB)
    assert.equal(toHex(command.subarray(0, 5)), '90AF000020')
    const sent = cbcDecrypt(zeroKey, zeroKey, command.subarray(5, 37))
    assert.equal(toHex(sent), `${toHex(rndA)}${toHex(rndB).slice(2)}${toHex(rndB).slice(0, 2)}`)
  })

  it('makes the published session keys', () => {
    const { encryptionKey, macKey } = sessionKeys(zeroKey, rndA, rndB)
    assert.equal(toHex(encryptionKey), '1309C877509E5A215007FF0ED19CA564')
    assert.equal(toHex(macKey), '4C6626F5E72EA694202139295C7A7FC7')
  })

  it('opens a session on the right answer only', () => {
    const answer = join(hexToBytes('9D00C4DF'), rndA.subarray(1), rndA.subarray(0, 1), new Uint8Array(12))
    const session = openSession(zeroKey, rndA, sealedRndB, cbcEncrypt(zeroKey, zeroKey, answer))
    assert.equal(session && toHex(session.transactionId), '9D00C4DF')
    assert.equal(session?.counter, 0)
    answer[5] = (answer[5] ?? 0) ^ 1
    assert.equal(openSession(zeroKey, rndA, sealedRndB, cbcEncrypt(zeroKey, zeroKey, answer)), null)
    assert.equal(openSession(zeroKey, rndA, sealedRndB, new Uint8Array(16)), null)
  })
})

describe('AN12196: protected commands', () => {
  const first: ChipSession = {
    transactionId: hexToBytes('9D00C4DF'),
    encryptionKey: hexToBytes('1309C877509E5A215007FF0ED19CA564'),
    macKey: hexToBytes('4C6626F5E72EA694202139295C7A7FC7'),
    counter: 0,
  }
  const second: ChipSession = {
    transactionId: hexToBytes('7614281A'),
    encryptionKey: hexToBytes('4CF3CB41A22583A61E89B158D252FC53'),
    macKey: hexToBytes('5529860B2FC5FB6154B7F28361D30BF9'),
    counter: 2,
  }

  it('ChangeFileSettings', () => {
    const command = changeFileSettings(nextCommand(first), hexToBytes('4000E0C1F121200000430000430000'))
    assert.equal(toHex(command), '905F0000190261B6D97903566E84C3AE5274467E89EAD799B7C1A0EF7A0400')
  })

  it('ChangeKey of slot 2, with the checksum of the new key', () => {
    const newKey = hexToBytes('F3847D627727ED3BC9C4CC050489B966')
    assert.equal(toHex(crc32nk(newKey)), '789DFADC')
    assert.equal(
      toHex(changeKey(second, { keyNo: 2, oldKey: zeroKey, newKey, version: 1 })),
      '90C4000029022CF362B7BF4311FF3BE1DAA295E8C68DE09050560D19B9E16C2393AE9CD1FAC75D0CE20BCD1D06E600',
    )
  })

  it('ChangeKey of slot 0, which needs no old key', () => {
    const newKey = hexToBytes('5004BF991F408672B1EF00F08F9E8647')
    assert.equal(
      toHex(changeKey(nextCommand(second), { keyNo: 0, oldKey: zeroKey, newKey, version: 1 })),
      '90C400002900C0EB4DEEFEDDF0B513A03A95A75491818580503190D4D05053FF75668A01D6FDA6610234BDED643200',
    )
  })

  it('accepts an answer with the MAC of this command only', () => {
    const mac = (count: number) =>
      oddBytes(cmacOnce(second.macKey, join([0], littleEndian(count, 2), second.transactionId)))
    assert.equal(isAnswerValid(second, mac(3)), true)
    assert.equal(isAnswerValid(second, mac(2)), false)
    assert.equal(isAnswerValid(second, join(mac(3), [0x00])), false)
    assert.equal(isAnswerValid(second, new Uint8Array()), false)
  })
})

describe('plain commands', () => {
  it('are those of the note', () => {
    assert.equal(toHex(plainCommands.selectApplication), '00A4040C07D276000085010100')
    assert.equal(toHex(getKeyVersion(3)), '90640000010300')
  })

  it('write a file in pieces that fit into one command', () => {
    const commands = updateBinary(new Uint8Array(256).fill(0xaa))
    assert.deepEqual(
      commands.map((command) => toHex(command.subarray(0, 5))),
      ['00D60000F8', '00D600F808'],
    )
    assert.equal(
      commands.reduce((sum, command) => sum + command.length - 5, 0),
      256,
    )
  })
})

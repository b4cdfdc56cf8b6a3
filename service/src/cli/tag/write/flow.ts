/**
 * Personalises a blank NTAG 424 DNA as a tag of a batch (spec §4.4; NXP AN12196 §5). Every change that could lock the chip is written to
 * the journal before it is sent, so that a chip taken off the reader at any moment is finished by putting it back.
 * It never switches LRP on, because that cannot be undone.
 */
import { randomBytes } from 'node:crypto'
import { sleep } from '../../../lib/async/sleep.ts'
import { toHex, join } from '../../../tap/bytes.ts'
import {
  isAnswerValid,
  authenticateFirst,
  authenticateSecond,
  changeFileSettings,
  changeKey,
  getKeyVersion,
  nextCommand,
  openSession,
  plainCommands,
  updateBinary,
  type ChipSession,
} from '../../../tap/provisioning/personalise.ts'
import { parseFileUrl, type TagTemplate } from '../../../tap/provisioning/template.ts'

/** Sends one command and returns the answer with its status word. Throws when the chip was removed. */
export type Transmit = (command: Uint8Array) => Promise<Uint8Array>

/** The slots whose new key was sent, and those of them that the chip confirmed. */
export type KeyProgress = Readonly<{ begun: readonly number[]; confirmed: readonly number[] }>
export type KeyJournal = Readonly<{
  /** Returns null for a chip that was never begun. */
  read: (uid: string) => Promise<KeyProgress | null>
  /** Resolves when the progress is durable. */
  write: (uid: string, progress: KeyProgress) => Promise<void>
}>

export type Personalisation = Readonly<{
  transmit: Transmit
  template: TagTemplate
  /** Returns the five keys of the chip with this UID, by slot. */
  keysOf: (uid: Uint8Array) => Promise<readonly Uint8Array[]>
  /** Version byte of every key: the epoch modulo 256. */
  version: number
  journal: KeyJournal
  random?: (length: number) => Uint8Array
}>

/** The chip could not be personalised. The message is one sentence. */
export class ChipError extends Error {}

/** Personalises a chip and returns its UID and a URL that it showed at the end. Throws `ChipError`, and what `transmit` throws. */
export async function personalise(options: Personalisation): Promise<{ uid: Uint8Array; address: string }> {
  const { transmit, template, keysOf, version, journal, random = randomBytes } = options

  async function send(command: Uint8Array, step: string, wanted = 0x9100): Promise<Uint8Array> {
    const answer = await transmit(command)
    if (statusOf(answer) !== wanted) throw new ChipError(`The chip refused to ${step} (${toHex(answer.subarray(-2))}).`)
    return answer.subarray(0, -2)
  }

  /** Returns null when the chip has another key in this slot. After failures the chip demands a pause; after a thousand it locks. */
  async function authenticate(keyNo: number, key: Uint8Array): Promise<ChipSession | null> {
    for (let tries = 0; tries < 50; tries++) {
      const first = await transmit(authenticateFirst(keyNo))
      if (statusOf(first) === 0x91ad) {
        await sleep(100)
        continue
      }
      if (statusOf(first) !== 0x91af) throw new ChipError(`The chip takes no key (${toHex(first.subarray(-2))}).`)
      const challenge = first.subarray(0, -2)
      const rndA = random(16)
      const second = await transmit(authenticateSecond(key, rndA, challenge))
      if (statusOf(second) === 0x91ad) continue
      if (statusOf(second) !== 0x9100) return null
      return openSession(key, rndA, challenge, second.subarray(0, -2))
    }
    throw new ChipError('The chip demands a longer pause; try it again later.')
  }

  async function asMaster(key: Uint8Array): Promise<ChipSession> {
    const session = await authenticate(0, key)
    if (session === null) throw new ChipError('The chip does not open with its master key; it is not blank.')
    return session
  }

  await send(plainCommands.selectApplication, 'select its application', 0x9000)
  await send(plainCommands.getVersion, 'report its version', 0x91af)
  await send(plainCommands.more, 'report its version', 0x91af)
  const uid = (await send(plainCommands.more, 'report its version')).slice(0, 7)
  const name = toHex(uid)
  let progress = await journal.read(name)
  const settings = await send(plainCommands.getFileSettings, 'report its file settings')
  if (progress === null) await assertBlank(settings)
  const keys = await keysOf(uid)
  const keyOf = (slot: number) => keys[slot] ?? factoryKey

  if (progress?.begun.includes(0) !== true || (await authenticate(0, factoryKey)) !== null) {
    let session = await asMaster(factoryKey)
    progress ??= { begun: [], confirmed: [] }
    await journal.write(name, progress)
    if (!isSet(settings, template)) session = await writeAddress()
    for (const slot of [1, 2, 3, 4]) session = await change(slot, session)
    await changeLast(session)
  } else {
    await asMaster(keyOf(0)) // its answer was lost, not its change
  }
  return { uid, address: await readBack() }

  async function assertBlank(found: Uint8Array): Promise<void> {
    const versions: number[] = []
    for (const slot of [0, 1, 2, 3, 4])
      versions.push((await send(getKeyVersion(slot), 'report its key versions'))[0] ?? 255)
    if (((found[1] ?? 255) & 0x40) !== 0 || versions.some((one) => one !== 0))
      throw new ChipError(`Chip ${name} is not blank: SDM is on, or a key was changed.`)
  }

  /** Writes file 02, which is free to write on a blank chip. Selecting a file ends the session. */
  async function writeAddress(): Promise<ChipSession> {
    await send(plainCommands.selectAddressFile, 'open its address file', 0x9000)
    for (const command of updateBinary(template.ndef)) await send(command, 'take the address', 0x9000)
    await send(plainCommands.selectApplication, 'select its application', 0x9000)
    const session = await asMaster(factoryKey)
    await confirmed(session, changeFileSettings(session, template.settings), 'take the file settings')
    return nextCommand(session)
  }

  async function change(slot: number, session: ChipSession): Promise<ChipSession> {
    if (progress?.confirmed.includes(slot) === true) return session
    if (progress?.begun.includes(slot) === true) {
      const isChanged = (await authenticate(slot, keyOf(slot))) !== null
      session = await asMaster(factoryKey)
      if (isChanged) return keep(slot, session)
    }
    await begin(slot)
    const order = { keyNo: slot, oldKey: factoryKey, newKey: keyOf(slot), version }
    await confirmed(session, changeKey(session, order), `take key ${slot}`)
    return keep(slot, nextCommand(session))
  }

  /** Changes key 0, which ends the session. Its answer carries no MAC. */
  async function changeLast(session: ChipSession): Promise<void> {
    await begin(0)
    const order = { keyNo: 0, oldKey: factoryKey, newKey: keyOf(0), version }
    await send(changeKey(session, order), 'take its master key')
    await keep(0, session)
  }

  async function begin(slot: number): Promise<void> {
    const { begun = [], confirmed: done = [] } = progress ?? {}
    progress = { begun: [...new Set([...begun, slot])], confirmed: done }
    await journal.write(name, progress)
  }

  async function keep(slot: number, session: ChipSession): Promise<ChipSession> {
    const { begun = [], confirmed: done = [] } = progress ?? {}
    progress = { begun, confirmed: [...new Set([...done, slot])] }
    await journal.write(name, progress)
    return session
  }

  async function confirmed(session: ChipSession, command: Uint8Array, step: string): Promise<void> {
    const answer = await transmit(command)
    if (statusOf(answer) !== 0x9100) throw new ChipError(`The chip refused to ${step} (${toHex(answer.subarray(-2))}).`)
    if (!isAnswerValid(session, answer)) throw new ChipError(`The chip's answer is not genuine (${step}); put it back.`)
  }

  async function readBack(): Promise<string> {
    await send(plainCommands.selectApplication, 'select its application', 0x9000)
    await send(plainCommands.selectAddressFile, 'open its address file', 0x9000)
    const halves = [
      await send(readHalf(0x00), 'show its address', 0x9000),
      await send(readHalf(0x80), 'show its address', 0x9000),
    ]
    const address = parseFileUrl(join(...halves))
    if (address === null) throw new ChipError(`Chip ${name} shows no address.`)
    return address
  }
}

function statusOf(answer: Uint8Array): number {
  return ((answer.at(-2) ?? 0) << 8) | (answer.at(-1) ?? 0)
}

/** Compares the settings. GetFileSettings adds a type byte in front and the file size after the access rights. */
function isSet(found: Uint8Array, { settings }: TagTemplate): boolean {
  return toHex(join(found.subarray(1, 4), found.subarray(7))) === toHex(settings)
}

/** Builds READ BINARY of a half. The chip mirrors the same tap into both, because consecutive reads count once. */
function readHalf(offset: number): Uint8Array {
  return Uint8Array.of(0x00, 0xb0, 0x00, offset, 0x80)
}

const factoryKey = new Uint8Array(16)

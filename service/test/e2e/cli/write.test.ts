/** `touchstone tag write` (spec §4.4) with chips in software on a reader in software. */
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { sessionBase, type Session } from '../../../src/cli/session/session.ts'
import { writeTags, type PcscPackage } from '../../../src/cli/tag/write.ts'
import { readConfig } from '../../../src/app/config/config.ts'
import { toHex } from '../../../src/tap/bytes.ts'
import { createChip, type Chip } from '../../support/tap/chip.ts'
import { commandsOf } from '../../support/processes/cli.ts'
import { newUid } from '../../support/tap/tags.ts'
import { startWorld, type World } from '../../support/world.ts'

/**
 * nfc-pcsc with one reader, on which these are put one after another: the next one when the address of the last was read, or when
 * it was taken away, `tornAt` commands after it was put there.
 */
function readerWith(chips: readonly { chip: Chip; tornAt?: number }[]): PcscPackage {
  class NFC extends EventEmitter {
    constructor() {
      super()
      const reader = Object.assign(new EventEmitter(), { autoProcessing: true, reader: { name: 'ACS' }, transmit })
      let at = -1
      let sent = 0
      async function transmit(command: Buffer): Promise<Buffer> {
        const { chip, tornAt = Infinity } = chips[at] ?? assert.fail('no chip is there')
        const isTorn = sent++ >= tornAt
        if (isTorn || command.toString('hex') === '00b0008080') setImmediate(next)
        if (isTorn) throw new Error('SCardTransmit error: Transaction failed.')
        return Buffer.from(chip.transmit(Uint8Array.from(command)))
      }
      function next(): void {
        if (at >= 0) reader.emit('card.off')
        if (++at >= chips.length) return
        sent = 0
        reader.emit('card', { standard: 'TAG_ISO_14443_4' })
      }
      setImmediate(() => {
        this.emit('reader', reader)
        next()
      })
    }
    close() {}
  }
  return { NFC: NFC as unknown as PcscPackage['NFC'] }
}

const address = 'https://verify.example.com/api/verify?picc={picc}&cmac={cmac}'

describe('touchstone tag write', () => {
  let world: World
  let run: ReturnType<typeof commandsOf>
  const said: string[] = []
  let session: Session
  before(async () => {
    world = await startWorld()
    run = commandsOf(world)
    await run('tag', 'batch', 'create', 'b')
    const io = { out: (line: string) => void said.push(line), err: (line: string) => void said.push(line) }
    session = {
      ...sessionBase(readConfig(world.settings), world.url, { store: world.components, chain: world.components }),
      io: { ...io, cwd: '/', signal: new AbortController().signal },
    }
  })
  after(() => world.end())

  const journals = () => readdir(join(world.settings.DATA_DIR, 'keys', 'chips')).catch(() => [])

  it('makes blank chips tags that verify, each registered with its counter used up', async () => {
    const uids = [newUid(), newUid()]
    const chips = uids.map((uid) => createChip({ uid }))
    const exit = await writeTags(
      session,
      address,
      { batch: 'b', count: 2 },
      readerWith(chips.map((chip) => ({ chip }))),
    )
    assert.equal(exit, 0, said.join('\n'))
    assert.ok(said.includes('Reader: ACS'))
    assert.equal(said.at(-1), '2 of 2 tags written.')
    for (const [index, uid] of uids.entries()) {
      const tag = await world.components.tags.tagOfUid(uid)
      assert.equal(tag?.batchId, 'b')
      assert.ok((tag?.lastCounter ?? 0) >= 1)
      const shown = tapOf(chips[index] ?? assert.fail())
      assert.match((await run('tag', 'verify', shown)).out, /^genuine, but not bound to an item/)
    }
    assert.deepEqual(await journals(), [])
  })

  it('finishes a chip that was taken away when it is put back', async () => {
    const uid = newUid()
    const chip = createChip({ uid })
    const torn = await writeTags(
      session,
      address,
      { batch: 'b', count: 1 },
      readerWith([{ chip, tornAt: 20 }, { chip }]),
    )
    assert.equal(torn, 0, said.join('\n'))
    assert.ok(said.includes('The chip was taken away too early: put it back.'))
    assert.equal(said.at(-1), '1 of 1 tags written, 1 tries failed.')
    assert.equal((await world.components.tags.tagOfUid(uid))?.batchId, 'b')
  })

  it('keeps no key in its journal, and goes on for the same batch and address only', async () => {
    const uid = newUid()
    const chip = createChip({ uid })
    const stopped = new AbortController()
    const io = {
      ...session.io,
      signal: stopped.signal,
      err: (line: string) => line.includes('put it back') && stopped.abort(),
    }
    await writeTags({ ...session, io }, address, { batch: 'b', count: 1 }, readerWith([{ chip, tornAt: 20 }]))
    assert.deepEqual(await journals(), [`${toHex(uid)}.json`])
    const text = await readFile(join(world.settings.DATA_DIR, 'keys', 'chips', `${toHex(uid)}.json`), 'utf8')
    const changed = chip.keys().filter((key) => !/^0+$/.test(key))
    assert.ok(changed.length > 0)
    for (const key of changed) assert.ok(!text.includes(key))
    await run('tag', 'batch', 'create', 'other')
    await assert.rejects(
      writeTags(session, address, { batch: 'other', count: 1 }, readerWith([{ chip }])),
      /was begun for batch b and https:.*; finish it with these\./,
    )
  })

  it('says how to get what it needs, and refuses a batch that is closed', async () => {
    const write = ['tag', 'write', '--batch', 'b', '--host', 'verify.example.com']
    assert.deepEqual(await run(...write), {
      exit: 1,
      out: '',
      err: 'touchstone: Writing tags needs a PC/SC reader and its package: npm install --no-save nfc-pcsc',
    })
    await run('tag', 'batch', 'retire', 'b')
    await assert.rejects(writeTags(session, address, { batch: 'b', count: 1 }, readerWith([])), /is not active/)
  })
})

/** Reads file 02 as a phone does. */
function tapOf(chip: Chip): string {
  const send = (hex: string) => chip.transmit(Uint8Array.from(Buffer.from(hex, 'hex')))
  send('00A4040C07D276000085010100')
  send('00A4000C02E104')
  const file = Buffer.concat([send('00B0000080'), send('00B0008080')].map((answer) => answer.subarray(0, -2)))
  return `https://${file.subarray(7, 2 + file.readUInt16BE(0)).toString()}`
}

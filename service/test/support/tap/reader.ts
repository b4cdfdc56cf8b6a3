/** A PC/SC reader in software, and a phone that reads one chip. Chips are put on it and taken away. */
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { PcscPackage } from '../../../src/cli/tag/write/write.ts'
import type { Chip } from './chip.ts'

/**
 * nfc-pcsc with one reader, on which these are put one after another. The next one when the address of the last was read, or when it was
 * taken away: `tornAt` commands after it was put there, or answered, by `liftedAt`.
 */
export function readerWith(
  chips: readonly { chip: Chip; tornAt?: number; liftedAt?: number }[],
): PcscPackage & { readonly isOpen: () => boolean } {
  let opened = 0
  const close = () => void opened--
  class NFC extends EventEmitter {
    readonly close = close
    constructor() {
      super()
      opened++
      const reader = Object.assign(new EventEmitter(), {
        autoProcessing: true,
        reader: { name: 'ACS' },
        transmit,
        close,
      })
      let at = -1
      let sent = 0
      async function transmit(command: Buffer): Promise<Buffer> {
        const { chip, tornAt = Infinity, liftedAt } = chips[at] ?? assert.fail('no chip is there')
        const isTorn = sent++ >= tornAt
        if (isTorn || sent === liftedAt || command.toString('hex') === '00b0008080') setImmediate(next)
        if (isTorn) {
          const error = new Error('SCardTransmit error: Transaction failed.')
          setImmediate(() => reader.emit('error', error))
          throw error
        }
        return Buffer.from(chip.transmit(Uint8Array.from(command)))
      }
      function next(): void {
        if (at >= 0) reader.emit('card.off')
        if (++at >= chips.length) return
        sent = 0
        assert.equal(reader.autoProcessing, false, 'or nfc-pcsc itself sends commands to the chip')
        reader.emit('card', { standard: 'TAG_ISO_14443_4' })
      }
      setImmediate(() => {
        opened++
        this.emit('reader', reader)
        next()
      })
    }
  }
  return { NFC: NFC as unknown as PcscPackage['NFC'], isOpen: () => opened > 0 }
}

/** Reads file 02 as a phone does. */
export function tapOf(chip: Chip): string {
  const send = (hex: string) => chip.transmit(Uint8Array.from(Buffer.from(hex, 'hex')))
  send('00A4040C07D276000085010100')
  send('00A4000C02E104')
  const file = Buffer.concat([send('00B0000080'), send('00B0008080')].map((answer) => answer.subarray(0, -2)))
  return `https://${file.subarray(7, 2 + file.readUInt16BE(0)).toString()}`
}

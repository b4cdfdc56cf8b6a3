/** Chips on a PC/SC reader, through the optional package nfc-pcsc. */
import { ChipError, type Transmit } from './flow.ts'
import { CommandError } from '../../session/session.ts'

/** The part of nfc-pcsc that is used here. */
type Reader = {
  autoProcessing: boolean
  readonly reader: { readonly name: string }
  readonly on: (event: 'card' | 'card.off' | 'error', listener: (value: unknown) => void) => unknown
  readonly transmit: (data: Buffer, maxLength: number) => Promise<Buffer>
}
type Nfc = {
  readonly on: (event: 'reader' | 'error', listener: (value: never) => void) => unknown
  readonly close: () => void
}
export type PcscPackage = { readonly NFC: new () => Nfc }

/** Imports the package. Throws a sentence with the command that installs it. */
export async function loadPcsc(): Promise<PcscPackage> {
  const name = 'nfc-pcsc' // not among the dependencies: only a personalisation station needs it
  try {
    return (await import(name)) as PcscPackage
  } catch {
    throw new CommandError('Writing tags needs a PC/SC reader and its package: npm install --no-save nfc-pcsc')
  }
}

/** Yields every chip that is put on a reader, until `signal` aborts. Throws one sentence when the reader fails. */
export async function* chipsOn(
  { NFC }: PcscPackage,
  { signal, onReader }: { signal: AbortSignal; onReader: (name: string) => void },
): AsyncGenerator<Transmit> {
  const chips: Transmit[] = []
  let failure: Error | undefined
  let wake = () => {}
  const fail = () => {
    failure = new CommandError('The PC/SC service or the reader failed: is pcscd running, is the reader connected?')
    wake()
  }
  const nfc = new NFC()
  nfc.on('error', fail)
  nfc.on('reader', (reader: Reader) => {
    reader.autoProcessing = false
    onReader(reader.reader.name)
    reader.on('error', () => {}) // a chip taken away in the middle shows in its own transmit
    // A command for one chip must never reach the next one.
    let present = 0
    reader.on('card.off', () => void present++)
    reader.on('card', () => {
      const mine = ++present
      chips.push((command) => transmit(reader, mine === present ? command : null))
      wake()
    })
  })
  signal.addEventListener('abort', () => wake())
  try {
    while (!signal.aborted) {
      const chip = chips.shift()
      if (chip !== undefined) yield chip
      else if (failure !== undefined) throw failure
      else await new Promise<void>((resolve) => (wake = resolve))
    }
  } finally {
    nfc.close()
  }
}

/** Sends a command. Null means that its chip was removed. */
async function transmit(reader: Reader, command: Uint8Array | null): Promise<Uint8Array> {
  const answer = command === null ? null : await reader.transmit(Buffer.from(command), 258).catch(() => null)
  if (answer === null) throw new ChipError('The chip was taken away too early: put it back.')
  return Uint8Array.from(answer)
}

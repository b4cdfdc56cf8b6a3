/** The service of PC/SC, and its errors as sentences with a remedy. The codes are those of pcsc-lite and of Windows, which are the same. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { CommandError } from '../../session/output.ts'

/** Throws a sentence where the service of Linux does not run. The library would wait for it without end, and block this process. */
export async function assertServiceRuns(socket = '/run/pcscd/pcscd.comm'): Promise<void> {
  const connection = connect(socket)
  try {
    await once(connection, 'connect')
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ECONNREFUSED') throw new CommandError(noService)
  } finally {
    connection.destroy()
  }
}

/**
 * Returns a sentence that says what to do. `error` is that of nfc-pcsc, or the one that it holds as `previous`; its text ends with the code
 * in hex. `otherwise` is the sentence for a code that is not known here.
 */
export function pcscSentence(error: unknown, otherwise?: string): string {
  const { previous } = (error ?? {}) as { previous?: unknown }
  const text = [error, previous]
    .map((each) => (each instanceof Error ? each.message : ''))
    .join(' ')
    .trim()
  const [, code = ''] = /0x([0-9a-f]{8})/i.exec(text) ?? []
  const known = sentences[code.toLowerCase()] ?? otherwise
  if (known !== undefined) return known
  const shown = text.replaceAll(/[^\x20-\x7e]/g, ' ').slice(0, 200)
  return `The PC/SC reader failed (${shown}): unplug it, plug it in again, and run this again.`
}

const noService = 'The PC/SC service does not run: start it (sudo systemctl start pcscd), then run this again.'
const noReader = 'No PC/SC reader is connected: plug one in, check that pcsc_scan lists it, then run this again.'
export const removed = 'The chip was taken away too early: put it back.'
const silent = 'The chip does not answer: lay it flat on the middle of the reader, and keep metal away.'

const sentences: Readonly<Record<string, string>> = {
  '8010001d': noService, // SCARD_E_NO_SERVICE
  '8010001e': noService, // SCARD_E_SERVICE_STOPPED
  '80100013': noService, // SCARD_F_COMM_ERROR
  '8010002e': noReader, // SCARD_E_NO_READERS_AVAILABLE
  '80100009': noReader, // SCARD_E_UNKNOWN_READER
  '80100017': noReader, // SCARD_E_READER_UNAVAILABLE
  '8010000b':
    'Another program uses the reader: close it (a browser, a wallet, gpg-agent), then put the chip on it again.', // SCARD_E_SHARING_VIOLATION
  '8010006a':
    'This user may not use the reader: allow access to pcscd for it (polkit), or run the command as another user.', // SCARD_W_SECURITY_VIOLATION
  '80100069': removed, // SCARD_W_REMOVED_CARD
  '8010000c': removed, // SCARD_E_NO_SMARTCARD
  '80100066': silent, // SCARD_W_UNRESPONSIVE_CARD
  '80100067': silent, // SCARD_W_UNPOWERED_CARD
  '80100068': silent, // SCARD_W_RESET_CARD
  '8010000f': 'The reader and the chip have no protocol in common: use a reader for ISO 14443-4, such as an ACR1252U.', // SCARD_E_PROTO_MISMATCH
}

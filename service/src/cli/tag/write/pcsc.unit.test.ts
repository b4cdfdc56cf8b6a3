import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { testFolder } from '../../../../test/support/folder.ts'
import { assertServiceRuns, pcscSentence, removed } from './pcsc.ts'

describe('an error of PC/SC', () => {
  it('is a sentence that says what to do', () => {
    for (const [text, sentence] of [
      ['SCardEstablishContext error: Service not available.(0x8010001d)', /^The PC\/SC service does not run: start it/],
      ['SCardGetStatusChange error: RPC transport error.(0x80100013)', /^The PC\/SC service does not run: start it/],
      ['SCardListReaders error: Cannot find a smart card reader.(0x8010002E)', /^No PC\/SC reader is connected: plug/],
      ['SCardConnect error: Sharing violation.(0x8010000b)', /^Another program uses the reader: close it/],
      ['SCardConnect error: Access denied.(0x8010006a)', /^This user may not use the reader: allow/],
      ['SCardTransmit error: Card was removed.(0x80100069)', /^The chip was taken away too early: put it back\.$/],
      ['SCardConnect error: Card is unresponsive.(0x80100066)', /^The chip does not answer: lay it/],
    ] as const)
      assert.match(pcscSentence(new Error(text)), sentence)
  })

  it('shows the text of an unknown one, on one line and bounded', () => {
    const said = pcscSentence(new Error(`Strange\n\u001b[31m${'x'.repeat(1_000)}`))
    assert.match(said, /^The PC\/SC reader failed \(Strange {2}\[31mx+\): unplug it/)
    assert.ok(said.length < 300)
    assert.match(pcscSentence(null), /^The PC\/SC reader failed \(\): unplug it/)
  })

  it('is found behind the one that nfc-pcsc makes of it, and is a removed chip where nothing else is known', () => {
    const previous = new Error('SCardTransmit error: Card was reset.(0x80100068)')
    const error = Object.assign(new Error('An error occurred while transmitting.'), { previous })
    assert.match(pcscSentence(error, removed), /^The chip does not answer/)
    assert.equal(pcscSentence(new Error('SCardTransmit error: Transaction failed.'), removed), removed)
  })
})

describe('the PC/SC service of Linux', () => {
  it('is missed before its library is loaded, which would wait for it without end', async () => {
    const socket = join(testFolder(), 'pcscd.comm')
    await assert.rejects(assertServiceRuns(socket), /^Error: The PC\/SC service does not run: start it/)
    const server = createServer().listen(socket)
    await once(server, 'listening')
    await assertServiceRuns(socket)
    server.close()
    await assert.rejects(assertServiceRuns(socket), /^Error: The PC\/SC service does not run: start it/)
  })
})

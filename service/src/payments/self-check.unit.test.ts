/** The gateway's checks of itself. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createLog } from '../lib/log.ts'
import { createSelfCheck } from './self-check.ts'

describe('the check of the signer', () => {
  const address = `0x${'ab'.repeat(20)}`
  const free: Record<string, string> = { eth_getCode: '0x', eth_call: `0x${'0'.repeat(64)}` }

  /** Returns what is found of a key; `answers` are those of the chain, by method. */
  async function found(key: object, answers = free, terms = { payTo: `0x${'cd'.repeat(20)}` }) {
    using selfCheck = createSelfCheck({
      key: () => ({ address, keyId: 'attest-1', ...key }),
      terms,
      facilitatorAddresses: [],
      rpc: async (method: string) => answers[method] ?? '0x0',
      contract: `0x${'ef'.repeat(20)}`,
      log: createLog(() => {}),
    } as unknown as Parameters<typeof createSelfCheck>[0])
    await selfCheck.run()
    return selfCheck.results().get('signer')
  }

  it('says why the attestation key signs nothing', async () => {
    const cannotSign = 'It begins on 2036-11-25T00:45:32Z only.'
    assert.deepEqual(await found({ cannotSign }), { state: 'missing', message: cannotSign })
  })

  it('rejects a key that signs anything but attestations, and names what', async () => {
    const sent = 'The attestation key has sent transactions or holds code.'
    for (const [answers, state, message] of [
      [{ eth_getTransactionCount: '0x1' }, 'wrong', sent],
      [{ eth_getCode: '0xef0100' }, 'wrong', sent],
      [{ eth_call: `0x${'0'.repeat(63)}1` }, 'wrong', 'The attestation key holds a role of the core contract.'],
      [{ eth_getBalance: '0x1' }, 'missing', 'The attestation key’s account holds ether.'],
    ] as const)
      assert.deepEqual(await found({}, { ...free, ...answers }), { state, message })
    const message = 'The attestation key is also the recipient, the facilitator, or the key of the payment channels.'
    assert.deepEqual(await found({}, free, { payTo: address.toUpperCase().replace('X', 'x') }), {
      state: 'wrong',
      message,
    })
    assert.equal((await found({}))?.state, 'ok')
  })
})

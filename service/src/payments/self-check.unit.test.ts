/** The gateway's checks of itself. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createLog } from '../lib/log.ts'
import { createSelfCheck } from './self-check.ts'

describe('the check of the signer', () => {
  it('says why the attestation key signs nothing', async () => {
    const cannotSign = 'It begins on 2036-11-25T00:45:32Z only.'
    const answers: Record<string, string> = { eth_getCode: '0x', eth_call: `0x${'0'.repeat(64)}` }
    const key = { address: `0x${'ab'.repeat(20)}`, keyId: 'attest-1', cannotSign }
    using selfCheck = createSelfCheck({
      key: () => key,
      terms: { payTo: `0x${'cd'.repeat(20)}` },
      facilitatorAddresses: [],
      rpc: async (method: string) => answers[method] ?? '0x0',
      contract: `0x${'ef'.repeat(20)}`,
      log: createLog(() => {}),
    } as unknown as Parameters<typeof createSelfCheck>[0])
    await selfCheck.run()
    assert.deepEqual(selfCheck.results().get('signer'), { state: 'missing', message: cannotSign })
  })
})

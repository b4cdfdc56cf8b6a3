import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { serve } from '../../../test/support/http.ts'
import { createLog } from '../../lib/log.ts'
import { createAnyProvider } from './any-provider.ts'

const contract = `0x${'0'.repeat(40)}` as const

/** Answers `eth_call` with these, one after another; the last one stays. */
async function providerOf(answers: readonly object[]) {
  const left = [...answers]
  const served = await serve((request, response) => {
    request.setEncoding('utf8').on('data', (body: string) => {
      const { id, method } = JSON.parse(body) as { id: number; method: string }
      const answer = method === 'eth_chainId' ? { result: '0x14a34' } : left.length > 1 ? left.shift() : left[0]
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
    })
  })
  const any = createAnyProvider({ rpcUrls: [served.url], contract, chainId: 84532, log: createLog(() => {}) })
  return {
    rpc: any.rpc,
    async [Symbol.asyncDispose]() {
      await any.close()
      await served.close()
    },
  }
}

const refused = (message: string) => ({ error: { code: -32000, message } })

describe('a read over all providers', () => {
  it('is repeated while the block is unknown, in whatever words a node says so', async () => {
    for (const message of ['unknown block', 'header for hash not found', 'hash is not currently canonical']) {
      await using provider = await providerOf([refused(message), refused(message), { result: '0x2a' }])
      assert.equal(await provider.rpc('eth_call', []), '0x2a', message)
    }
  })

  it('is not repeated where the contract reverts', async () => {
    await using provider = await providerOf([refused('execution reverted'), { result: '0x2a' }])
    await assert.rejects(provider.rpc('eth_call', []), /execution reverted/)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { answeredReads } from '../../../test/support/agents/registry-reads.ts'
import { isChainUnavailable } from '../../lib/errors.ts'
import { createAgents } from './registry.ts'

const identity = `0x${'1d'.repeat(20)}` as const
const known = { ownerOf: () => identity, tokenURI: () => '', getAgentWallet: () => identity }

describe('the record of an agent', () => {
  it('is CHAIN_UNAVAILABLE where the registry has its owner and nothing else', async () => {
    for (const missing of ['tokenURI', 'getAgentWallet']) {
      const { reads } = answeredReads({ ...known, [missing]: () => null })
      await assert.rejects(createAgents({ reads, identity })(0n), isChainUnavailable)
    }
    const { reads } = answeredReads({ ...known, ownerOf: () => null })
    assert.equal(await createAgents({ reads, identity })(0n), null)
  })
})

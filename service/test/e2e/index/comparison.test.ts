/** The comparison of the index with the chain (spec §2.5). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { verifyIndex, type VerifyIndexOptions } from '../../../src/chain/indexer/verify.ts'
import { tokenPages } from '../../../src/index/snapshot.ts'
import { openEmptyPglite } from '../../support/database/pglite.ts'
import { alice, bob, hash, indexerOver, operator, startIndexChain } from '../../support/index/world.ts'
import { useOpened } from '../../support/opened.ts'

describe('the comparison of the index with the chain', () => {
  const database = useOpened(openEmptyPglite)
  const chain = useOpened(startIndexChain)

  it('finds offers that are not as on the chain, nothing without an index, and fails where the chain is reorganised meanwhile', async () => {
    const source = chain.source()
    const options = { contract: chain.contract, interface: 'registry', startBlock: 0n, source } as const
    const verify = (more: Partial<VerifyIndexOptions> = {}) =>
      verifyIndex({ ...options, pages: tokenPages(database), ...more })
    assert.equal(await verify(), null)
    const ids = [13n, 14n, 16n]
    for (let mint = 0; mint < 16; mint += 1) await chain.send(operator.address, 'mint', [alice.address, hash(0)])
    for (const id of ids) await chain.send(alice.address, 'initiateTransfer', [id, bob.address, 2n ** 40n, hash(0)])
    await indexerOver(chain, database).catchUp()
    await database.exec(`update transfer set to_addr = from_addr where token_id = 13;
      update transfer set expires_at = expires_at - interval '1 second' where token_id = 14;
      delete from transfer where token_id = 16`)
    const found = await verify()
    assert.deepEqual(
      found?.differences.map(({ tokenId, fields }) => [tokenId, fields.includes('pendingTransfer')]),
      ids.map((id) => [id, true]),
    )
    const blocksAt: typeof source.blocksAt = async (numbers) => {
      const blocks = await source.blocksAt(numbers)
      // The last look is at the block that was compared.
      return new Set(numbers).size > 1 ? blocks : blocks.map((block) => block && { ...block, hash: hash(1) })
    }
    const reorganised = verify({ source: { ...source, blocksAt } })
    await assert.rejects(reorganised, { code: 'CHAIN_UNAVAILABLE' })
    await source.close()
  })
})

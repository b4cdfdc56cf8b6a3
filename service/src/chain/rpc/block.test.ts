import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { useProviders } from '../../../test/support/providers.ts'
import { cell, echo } from '../../../test/support/rpc-anvil.ts'
import { type Block, mayHoldLogsOf } from './block.ts'

describe('the log filter of a header', () => {
  const { anvil, sourceOver } = useProviders(0)
  let silent: Block
  let loud: Block
  before(async () => {
    const { source } = sourceOver([anvil.url])
    await anvil.rpc('anvil_mine', ['0x1'])
    silent = await source.head()
    await anvil.store(1)
    loud = await source.head()
  })
  it('distinguishes a block with logs of the contract from one without', () => {
    assert.equal(mayHoldLogsOf(cell)(loud), true)
    assert.equal(mayHoldLogsOf(cell)(silent), false)
    assert.equal(mayHoldLogsOf(echo)(loud), false)
  })

  it('is ignored where the header cannot be checked', () => {
    const { logsBloom: _, ...thin } = silent.header
    const changed = { ...loud.header, logsBloom: silent.header['logsBloom'] }
    const unknown = { ...silent.header, newField: '0x1' }
    for (const header of [thin, changed, unknown]) assert.equal(mayHoldLogsOf(cell)({ ...loud, header }), true)
  })

  it('means nothing on a chain that leaves it empty', () => {
    const receiptsRoot = `0x${'ab'.repeat(32)}`
    assert.equal(mayHoldLogsOf(cell)({ ...silent, header: { ...silent.header, receiptsRoot } }), true)
  })
})

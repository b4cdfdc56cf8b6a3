import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { cell, echo, sourceOver, startTestAnvil, type TestAnvil } from '../../../test/support/rpc-anvil.ts'
import { mayHoldLogsOf } from './bloom.ts'
import type { RpcChainSource } from '../rpc/source.ts'
import type { Block } from '../rpc/block.ts'

describe('the log filter of a header', () => {
  let anvil: TestAnvil
  let source: RpcChainSource
  let silent: Block
  let loud: Block
  before(async () => {
    anvil = await startTestAnvil()
    source = sourceOver([anvil.url]).source
    await anvil.rpc('anvil_mine', '0x1')
    silent = await source.head()
    await anvil.store(1)
    loud = await source.head()
  })
  after(async () => {
    await source.close()
    await anvil.close()
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

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { contract, marker, owner, testTools } from '../../../test/support/agents/assets.ts'
import { errorCodes, type ToolCode } from '../../lib/error-codes.ts'
import { checkFlaggedSchema, lifecycleHistorySchema, toJsonSchema, verdictSchema } from './schemas.ts'
import { toolNames, type ToolAnswer, type ToolName } from './tools.ts'

const { tools, lines } = testTools()
const ajv = formats.default(new Ajv2020({ strict: true }))
const validators = {
  verify_asset: ajv.compile(toJsonSchema(verdictSchema, 'output')),
  get_lifecycle_history: ajv.compile(toJsonSchema(lifecycleHistorySchema, 'output')),
  check_flagged: ajv.compile(toJsonSchema(checkFlaggedSchema, 'output')),
}

function structured(answer: ToolAnswer): Record<string, unknown> {
  assert.ok(answer.ok, JSON.stringify(answer))
  return answer.structured
}
function codeOf(answer: ToolAnswer): ToolCode {
  assert.ok(!answer.ok)
  const { version, error, ...others } = answer.error
  assert.deepEqual([version, others, Object.keys(error)], ['1', {}, ['code', 'message']])
  assert.ok(errorCodes[error.code].tool)
  return error.code
}

describe('the three tools', () => {
  it('answer every state with a result that fits its schema', async () => {
    for (const tool of toolNames)
      for (const id of ['1', '2', '3', '4', '5', '6', '7', '8', String(2n ** 256n - 1n)]) {
        const result = structured(await tools[tool]({ token_id: id }))
        assert.ok(validators[tool](result), `${tool} ${id}: ${ajv.errorsText(validators[tool].errors)}`)
        assert.equal(result['token_id'], id)
      }
  })

  it('check_flagged equals the verdict, without supplier text', async () => {
    const flags = structured(await tools.check_flagged({ token_id: '7' }))
    assert.deepEqual([flags['flagged'], flags['authentic'], flags['state']], [true, false, 'CLAIMED'])
    const reasonOf = async (id: string) => structured(await tools.check_flagged({ token_id: id }))['reason']
    assert.deepEqual(await Promise.all(['4', '5', '7', '11'].map(reasonOf)), [null, 'FLAGGED', 'STOLEN', 'RECALL'])
    assert.equal(JSON.stringify(await tools.check_flagged({ token_id: '8' })).includes(marker), false)
  })

  it('get_lifecycle_history lists events with the names of the API, never an address', async () => {
    const history = structured(await tools.get_lifecycle_history({ token_id: '4' }))
    const events = history['events'] as Record<string, unknown>[]
    assert.equal(history['event_count'], events.length)
    assert.deepEqual(
      events.map(({ type }) => type),
      ['AssetMinted', 'StateChanged', 'TagBound', 'FlagsChanged'],
    )
    assert.deepEqual([events[1]?.['to_state'], events[1]?.['to_state_code'], events[3]?.['flags']], ['MINTED', 1, 2])
    assert.equal(events[0]?.['timestamp'], '2026-09-21T14:13:20.000Z')
    assert.equal(JSON.stringify(history).toLowerCase().includes(owner.slice(2)), false)
    assert.deepEqual(history['chainRef'], {
      chain_id: 84532,
      contract,
      token_id: '4',
      block_number: 7,
      block_hash: `0x${'0'.repeat(63)}7`,
    })
  })

  it('get_lifecycle_history returns null, never an empty list, when the history is not verified', async () => {
    const history = structured(await tools.get_lifecycle_history({ token_id: '2' }))
    assert.deepEqual(
      [history['available'], history['reason'], history['events'], history['event_count']],
      [false, 'INDEX_BEHIND', null, null],
    )
  })

  it('take tokenId, a safe integer and leading zeros silently', async () => {
    for (const args of [
      { tokenId: '4' },
      { token_id: 4 },
      { tokenId: 4 },
      { token_id: '0004' },
      { token_id: '4', tokenId: '4' },
    ])
      assert.equal(structured(await tools.check_flagged(args))['token_id'], '4')
  })

  it('reject other keys and types as INVALID_ARGUMENT, with what to send', async () => {
    const wrong: [ToolName, unknown][] = [
      ...[undefined, null, 'x', 4, [], {}, { token_id: null }, { token_id: 1.5 }, { token_id: 2 ** 60 }].map(
        (args): [ToolName, unknown] => ['verify_asset', args],
      ),
      ['verify_asset', { token_id: '1', extra: 1 }],
      ['verify_asset', { token_id: '1', tokenId: '2' }],
      ['verify_asset', { token_id: '1', include_untrusted: 'no' }],
      ['check_flagged', { token_id: '1', include_untrusted: false }],
      ['get_lifecycle_history', JSON.parse('{"token_id":"1","__proto__":{"a":1}}')],
    ]
    for (const [tool, args] of wrong)
      assert.equal(codeOf(await tools[tool](args)), 'INVALID_ARGUMENT', JSON.stringify(args))
  })

  it('reject text that is not a token id as INVALID_TOKEN_ID, without repeating it', async () => {
    for (const id of ['', '0x1', '-1', ' 1', '1\n', '١', '9'.repeat(79), String(2n ** 256n), marker, -1]) {
      const answer = await tools.verify_asset({ token_id: id })
      assert.equal(codeOf(answer), 'INVALID_TOKEN_ID')
      assert.equal(JSON.stringify(answer).includes(marker), false)
    }
  })

  it('answer ASSET_NOT_FOUND for a token that was never minted', async () => {
    for (const tool of toolNames) assert.equal(codeOf(await tools[tool]({ token_id: '123456' })), 'ASSET_NOT_FOUND')
  })

  it('never throw: an unavailable chain and a bug are answers, and the cause is only logged', async () => {
    for (const tool of toolNames) {
      assert.equal(codeOf(await tools[tool]({ token_id: '9' })), 'CHAIN_UNAVAILABLE')
      const fault = await tools[tool]({ token_id: '10' })
      assert.equal(codeOf(fault), 'INTERNAL')
      assert.equal(JSON.stringify(fault).includes('function'), false)
    }
    assert.ok(lines.some((line) => line.includes('"code":"INTERNAL"') && line.includes('not a function')))
  })

  it('return hostile text only in untrusted, cleaned, and not at all if it is not wanted', async () => {
    const answer = await tools.verify_asset({ token_id: '8' })
    assert.ok(answer.ok)
    const { untrusted, ...rest } = answer.structured as { untrusted?: object }
    assert.equal(JSON.stringify(rest).includes(marker), false)
    assert.equal(untrusted, answer.untrusted)
    assert.ok(JSON.stringify(untrusted).includes(marker))
    assert.doesNotMatch(JSON.stringify(answer), /\\u001b|\u{202e}|[\u{e0000}-\u{e007f}]/u)
    const without = await tools.verify_asset({ token_id: '8', include_untrusted: false })
    assert.ok(without.ok && without.untrusted === undefined)
    assert.equal(JSON.stringify(without).includes(marker), false)
    assert.equal(lines.join('').includes(marker), false)
  })
})

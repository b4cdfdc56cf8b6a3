/** The reports of `recheck` and `prove` on a recorded block, row by row, and the requests that they send. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { against, rpcUrl, time } from '../../test/_checkers.ts'
import {
  blockHash,
  codeHash,
  contract,
  honest,
  recorded,
  recordedChain,
  type RpcAnswer,
  type RpcAnswers,
} from '../../test/_recorded.ts'
import { failed, rowOf, rowsOf } from '../../test/_report.ts'
import { mappingSlot, recordSlot } from '../proof/storage.ts'
import { prove, type ProveOptions } from './prove.ts'
import { recheck } from './recheck.ts'

const { metadata, verdict } = recorded

const formRows = [
  ['keys', '12 keys', 'the keys of the specification'],
  ['untrusted', 'supplier metadata', 'the form is right; the texts are not derived from the chain'],
  ['chainRef', '5 keys', 'the keys of the specification'],
]
const blockRows = [
  ['rpc.chain_id', '84532', '84532'],
  ['block', blockHash, blockHash],
]
const { chainRef, untrusted: _texts, ...plain } = verdict
const valueRows = [
  ...Object.entries(plain).map(([name, value]) => [name, String(value), String(value)]),
  ...Object.entries(chainRef).map(([name, value]) => [`chainRef.${name}`, String(value), String(value)]),
]
const hash = '0xfdc513e91f5401bbedfca7d255935870ac7e883dd42b834c8ed4fa87facc742b'
const metadataRows = [
  ['metadata.hash', hash, hash],
  ['metadata.texts', 'supplier metadata', 'what the minter committed to'],
]
const slots = [recordSlot(6n), mappingSlot(6n, 7n)]
const proofRows = [
  ['proof.header', blockHash, blockHash],
  ['proof.account', contract, contract],
  ['proof.code', codeHash, codeHash],
  ['proof.storage', slots.join(', '), slots.join(', ')],
]
const standingRows = [
  ['block.canonical', blockHash, blockHash],
  ['block.age', time, '12 s before the latest block'],
]
const tokenRow = ['token asked for', '6', '6']
const contractRow = ['contract', contract, contract]

describe('the report on a recorded verdict', () => {
  it('has the rows of a recheck', async () => {
    const { fetch, requests } = recordedChain()
    const report = await recheck(verdict, { rpcUrl, contract, tokenId: 6n, metadata, fetch })
    assert.deepEqual(rowsOf(report.checks), [
      ...formRows,
      tokenRow,
      contractRow,
      ...blockRows,
      ...valueRows,
      ...metadataRows,
      ...standingRows,
    ])
    assert.deepEqual([report.ok, report.outcome], [true, 'agrees'])
    const pinned = { blockHash, requireCanonical: true }
    const word = '0000000000000000000000000000000000000000000000000000000000000006'
    assert.deepEqual(requests, [
      { method: 'eth_chainId', params: [] },
      { method: 'eth_getBlockByHash', params: [blockHash, false] },
      { method: 'eth_call', params: [{ data: '0x4360005260206000f3' }, pinned] },
      { method: 'eth_call', params: [{ to: contract, data: `0xeac8f5b8${word}` }, pinned] },
      { method: 'eth_call', params: [{ to: contract, data: `0x219cc8bc${word}` }, pinned] },
      { method: 'eth_getBlockByNumber', params: ['0x9', false] },
      { method: 'eth_getBlockByNumber', params: ['latest', false] },
    ])
  })

  it('has the rows of a proof', async () => {
    const { fetch, requests } = recordedChain()
    const report = await prove(verdict, { rpcUrl, contract, codeHash, tokenId: '6', metadata, fetch })
    assert.deepEqual(rowsOf(report.checks), [
      ...formRows,
      tokenRow,
      contractRow,
      ...blockRows,
      ...proofRows,
      ...valueRows,
      ...metadataRows,
      ...standingRows,
    ])
    assert.deepEqual([report.ok, report.outcome], [true, 'agrees'])
    assert.deepEqual(requests, [
      { method: 'eth_chainId', params: [] },
      { method: 'eth_getBlockByHash', params: [blockHash, false] },
      { method: 'eth_getProof', params: [contract, slots, '0x9'] },
      { method: 'eth_getBlockByNumber', params: ['0x9', false] },
      { method: 'eth_getBlockByNumber', params: ['latest', false] },
    ])
  })

  it('has no rows of metadata, and asks for none, where none is given', async () => {
    const { fetch, requests } = recordedChain()
    const report = await prove(verdict, { rpcUrl, contract, fetch })
    assert.deepEqual(
      [report.ok, rowsOf(report.checks).some(([field = '']) => field.startsWith('metadata'))],
      [true, false],
    )
    assert.deepEqual(requests[2]?.params[1], [recordSlot(6n)])
    assert.deepEqual(rowOf(report, 'proof.code'), ['proof.code', 'not pinned by the caller', codeHash])
  })
})

describe('the record that a recheck reads', () => {
  const missing = 'no asset record of this contract at this block'
  const lastWords: [name: string, answer: RpcAnswer][] = [
    ['no code', { result: '0x' }],
    ['a number', { result: 7 }],
    ['null', { result: null }],
    ['a word more', { result: `${String(honest.eth_call([{ data: '0xeac8f5b8' }]).result)}${'0'.repeat(64)}` }],
    ['a list of the words', { result: [honest.eth_call([{ data: '0xeac8f5b8' }]).result] }],
    ['a revert by its code', { error: { code: 3, message: 'no' } }],
    ['a revert by its message', { error: { code: -32000, message: 'VM execution error: Reverted' } }],
    ['an invalid opcode', { error: { code: -32000, message: 'invalid opcode: INVALID' } }],
    ['no gas left', { error: { code: -32000, message: 'Out Of Gas' } }],
  ]
  for (const [name, answer] of lastWords)
    it(`is none where the contract answers with ${name}`, async () => {
      const report = await against('recheck', { eth_call: () => answer })
      assert.equal(report.outcome, 'differs')
      assert.deepEqual(rowOf(report, 'record'), ['record', 'ACTIVATED', missing])
    })

  it('is none for a token that was never minted', async () => {
    const report = await against('recheck', { eth_call: () => ({ result: `0x${'0'.repeat(320)}` }) })
    assert.deepEqual(rowOf(report, 'state'), ['state', 'ACTIVATED', 'NONE'])
  })

  const readBy = (read: (hash: string) => Promise<string>, answers: RpcAnswers = {}, of: unknown = verdict) =>
    recheck(of, { rpcUrl, contract, metadata: read, fetch: recordedChain(answers).fetch })

  it('reads the document of the hash on chain by a function, for a verdict with texts only', async () => {
    const asked: string[] = []
    const read = async (of: string) => {
      asked.push(of)
      return metadata
    }
    const report = await readBy(read)
    const found = rowsOf(report.checks).filter(([field = '']) => field.startsWith('metadata.'))
    assert.deepEqual([report.ok, found, asked], [true, metadataRows, [hash]])
    const { untrusted: _, ...bare } = verdict
    assert.deepEqual([(await readBy(read, {}, bare)).ok, asked.length], [true, 1])
  })

  it('leaves the texts undecided where their document cannot be read, and refuses texts without a hash', async () => {
    const rows = async (answers: RpcAnswers) => {
      const report = await readBy(() => Promise.reject(new Error('HTTP 404')), answers)
      return [report.outcome, ...rowsOf(report.checks.filter(({ ok }) => !ok))]
    }
    const row = ['metadata.texts', 'supplier metadata']
    assert.deepEqual(await rows({}), ['undecided', [...row, 'the document was not read']])
    const none = { result: `0x${'0'.repeat(64)}` }
    assert.deepEqual(await rows(hashing(none)), ['differs', [...row, 'the contract has no metadata']])
  })

  it('leaves the texts undecided where the contract gives no metadata hash', async () => {
    for (const result of ['0x', `${hash}00`, 7]) {
      const report = await against('recheck', hashing({ result }), { metadata })
      assert.deepEqual([report.outcome, failed(report)], ['undecided', ['metadata.hash']])
      assert.deepEqual(rowOf(report, 'metadata.hash'), ['metadata.hash', hash, 'the contract gives no metadata hash'])
    }
  })

  it('shows how texts and hash of another document differ', async () => {
    const { untrusted: _, ...bare } = verdict
    const rows = async (text: string, of: unknown = verdict) =>
      rowsOf((await against('prove', {}, { metadata: text }, of)).checks.filter(({ ok }) => !ok))
    assert.deepEqual(
      (await rows('{"name":"Jacket"}')).map(([field, , found]) => [field, found]),
      [
        ['metadata.hash', hash],
        ['metadata.texts', 'other texts'],
      ],
    )
    assert.deepEqual((await rows('x')).at(-1), [
      'metadata.texts',
      'an object',
      'the metadata is not JSON, or names a member twice',
    ])
    assert.deepEqual(await rows(metadata, bare), [['metadata.texts', 'left out', 'the texts of the metadata']])
    const lone = '{"name":"\ud800"}'
    assert.deepEqual((await rows(lone))[0], ['metadata.hash', 'a lone surrogate', 'a document in UTF-8'])
    const elsewhere = await against('prove', {}, { metadata, metadataSlot: 6n })
    assert.deepEqual(
      failed(elsewhere),
      ['metadata.hash'],
      'the recorded proof has the tag of the token at the slot of another mapping',
    )
  })
})

describe('the proof of a verdict', () => {
  it('names what an answer fails to prove', async () => {
    const subject = async (answer: unknown, options: Partial<ProveOptions> = {}) =>
      rowsOf((await against('prove', { eth_getProof: () => ({ result: answer }) }, options)).checks).find(
        ([field = '']) => field.startsWith('proof.'),
      )
    assert.deepEqual(await subject(null), ['proof.account', contract, 'the proof has not the form of EIP-1186'])
    const { proof } = recorded
    assert.deepEqual(await subject(proof), ['proof.storage', recordSlot(6n), 'there is not one storage proof per slot'])
    const one = { ...proof, storageProof: proof.storageProof.slice(0, 1) }
    assert.deepEqual(await subject(one, { codeHash: blockHash }), [
      'proof.code',
      blockHash,
      `the code hash is ${codeHash}`,
    ])
    const thin = await against('prove', { eth_getBlockByHash: () => ({ result: { hash: blockHash, number: '0x9' } }) })
    assert.deepEqual([thin.outcome, failed(thin)], ['undecided', ['proof.header']])
    assert.deepEqual(rowOf(thin, 'proof.header')?.[1], blockHash)
  })

  it('is undecided without a published slot of the records, and sends no request', async () => {
    const deployment = { chainId: 84532, contract, codeHash: null, recordsSlot: null }
    const { fetch, requests } = recordedChain()
    const report = await prove(verdict, { rpcUrl, deployment, fetch })
    assert.deepEqual(report.checks.at(-1), {
      field: 'proof.storage',
      ok: false,
      undecided: true,
      claimed: '',
      found: 'the slot of the records is not published: give recordsSlot',
    })
    assert.deepEqual([report.outcome, requests], ['undecided', []])
    assert.equal((await prove(verdict, { rpcUrl, deployment, recordsSlot: 3n, fetch })).outcome, 'agrees')
    assert.equal((await prove(verdict, { rpcUrl, deployment: 'local', fetch })).outcome, 'agrees')
  })
})

describe('a verdict that names nothing to look up', () => {
  const of = async (thing: unknown) => {
    const { fetch, requests } = recordedChain()
    const reports = [await recheck(thing, { rpcUrl, contract, fetch }), await prove(thing, { rpcUrl, contract, fetch })]
    assert.deepEqual(requests, [])
    assert.deepEqual(reports[0], reports[1])
    assert.equal(reports[0]?.outcome, 'differs')
    return rowsOf(reports[0]?.checks.filter(({ ok }) => !ok) ?? [])
  }
  const wrong = 'missing or unknown keys'

  it('is reported without a request', async () => {
    assert.deepEqual(await of(7), [['verdict', '7', 'not a JSON object']])
    assert.deepEqual(await of([]), [['verdict', 'an object', 'not a JSON object']])
    assert.deepEqual(await of({}), [
      ['keys', '0 keys', wrong],
      ['chainRef', 'undefined', 'not a JSON object'],
    ])
    assert.deepEqual(await of({ ...verdict, chainRef: [] }), [['chainRef', 'an object', 'not a JSON object']])
    const id = 'not a decimal token id without leading zeros'
    for (const tokenId of ['06', '', '0x6', '6 ', String(2n ** 256n)])
      assert.deepEqual(await of({ ...verdict, token_id: tokenId }), [['token_id', tokenId, id]])
    assert.deepEqual(await of({ ...verdict, token_id: 6 }), [['token_id', '6', id]])
    const ref = (change: object) => of({ ...verdict, chainRef: { ...chainRef, ...change } })
    assert.deepEqual(await ref({ contract: '0x12' }), [['chainRef.contract', '0x12', 'not an address']])
    const upper = blockHash.toUpperCase().replace('X', 'x')
    assert.deepEqual(await ref({ block_hash: upper }), [
      ['chainRef.block_hash', upper, 'not 32 bytes in lower-case hex'],
    ])
    assert.deepEqual(await of({ ...verdict, chainRef: {} }), [
      ['chainRef', '0 keys', wrong],
      ['chainRef.contract', 'undefined', 'not an address'],
      ['chainRef.block_hash', 'undefined', 'not 32 bytes in lower-case hex'],
    ])
  })

  it('may have a key more, which is reported beside the record', async () => {
    const report = await against('recheck', {}, {}, { ...verdict, more: 1 })
    assert.deepEqual(rowsOf(report.checks)[0], ['keys', '13 keys', wrong])
    const other = await against('recheck', {}, {}, { ...verdict, untrusted: { name: 'x' } })
    assert.deepEqual(rowsOf(other.checks)[1], ['untrusted', 'supplier metadata', 'not the warning and cleaned texts'])
    const nothing = await against('recheck', {}, {}, { ...verdict, untrusted: undefined })
    assert.deepEqual(failed(nothing), ['untrusted'])
  })
})

/** The answers of a contract that gives this for the hash of the metadata. */
function hashing(answer: RpcAnswer): RpcAnswers {
  const isRecord = ([call]: readonly unknown[]) => (call as { data: string }).data.startsWith('0xeac8f5b8')
  return { eth_call: (params) => (isRecord(params) ? honest.eth_call(params) : answer) }
}

/** Several endpoints, of which a number must agree; one provider given twice is no second witness. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { type Outcome, prove, recheck } from '../src/index.ts'
import { claimed, startChain } from './_chain.ts'
import { forward } from './_server.ts'

const chain = await startChain()
const other = await startChain({ nonce: 1 })
const [second, third] = await Promise.all([forward(chain.rpcUrl), forward(chain.rpcUrl)])
after(() => Promise.all([chain, other, second, third].map((opened) => opened[Symbol.asyncDispose]())))

const { rpcUrl, contract } = chain
const dead = 'http://127.0.0.1:1'
await chain.store(71n, claimed)
const verdict = await chain.verdict(71n)

const outcome = async (of: unknown, rpcUrls: string[], agree?: number): Promise<Outcome> =>
  (await recheck(of, { rpcUrl: rpcUrls, contract, agree })).outcome

describe('several endpoints', () => {
  it('must all agree, or as many as the caller asks for', async () => {
    const lying = { ...verdict, state: 'MINTED', state_code: 1 }
    assert.equal(await outcome(verdict, [rpcUrl, second.url]), 'agrees')
    assert.equal(await outcome(verdict, [rpcUrl, dead]), 'undecided')
    assert.equal(await outcome(verdict, [rpcUrl, dead], 1), 'agrees')
    assert.equal(await outcome(verdict, [rpcUrl, other.rpcUrl, second.url], 2), 'agrees')
    assert.equal(await outcome(verdict, [rpcUrl, other.rpcUrl]), 'differs')
    assert.equal(await outcome(verdict, [rpcUrl, other.rpcUrl, dead], 2), 'undecided')
    assert.equal(await outcome(lying, [rpcUrl, second.url, dead], 1), 'undecided')
    assert.equal(await outcome(lying, [rpcUrl, second.url, dead], 2), 'differs')
  })

  it('are each shown in the report, without their URL', async () => {
    const report = await recheck(verdict, { rpcUrl: [rpcUrl, dead, other.rpcUrl], contract, agree: 1 })
    const rows = report.checks.filter(({ field }) => field.startsWith('endpoint'))
    assert.deepEqual(
      rows.map((row) => [row.field, row.found]),
      [
        ['endpoint 1 of 3', 'agrees'],
        ['endpoint 2 of 3', 'RPC_UNAVAILABLE'],
        ['endpoint 3 of 3', 'differs: block'],
      ],
    )
  })

  it('are rejected when the number does not fit, and throw when none answers', async () => {
    for (const agree of [0, 3, 1.5, Number.NaN, -1, Infinity])
      await assert.rejects(outcome(verdict, [rpcUrl, second.url], agree), TypeError)
    await assert.rejects(outcome(verdict, []), TypeError)
    await assert.rejects(outcome(verdict, [dead, 'http://127.0.0.1:2']), { code: 'RPC_UNAVAILABLE' })
  })

  it('are rejected when two of them are one host, however it is spelled', async () => {
    const { port } = new URL(rpcUrl)
    const spellings = [
      [rpcUrl, rpcUrl],
      [rpcUrl, `${rpcUrl}/`],
      [rpcUrl, `${rpcUrl}/v2/another-key`],
      [rpcUrl, `https://127.0.0.1:${port}`],
      [rpcUrl, `http://localhost:${port}`],
      [rpcUrl, `http://LOCALHOST.:${port}`],
      [rpcUrl, `http://127.1:${port}`],
      [rpcUrl, `http://[::1]:${port}`],
      ['https://rpc.example', 'https://RPC.example:443/'],
      ['https://rpc.example', 'http://rpc.example'],
      ['https://rpc.example/v2/one', 'https://rpc.example./v2/two?x=1#y'],
    ]
    for (const urls of spellings) {
      const twice = { name: 'TypeError', message: /RPC URLs 2 and 3 name the same provider/ }
      const options = { rpcUrl: [second.url, ...urls], contract, agree: 1 }
      await assert.rejects(recheck(verdict, options), twice, urls.join(' '))
      await assert.rejects(prove(verdict, options), twice, urls.join(' '))
    }
    assert.equal(await outcome(verdict, [rpcUrl, third.url], 2), 'agrees')
  })
})

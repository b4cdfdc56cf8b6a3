/** A real anvil, ended in every way a program can end. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, truncate, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, beforeEach, describe, it } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { createLog } from '../../lib/log.ts'
import type { Hex } from '@touchstone/verdict'
import { publishedAccounts } from '../../domain/published-accounts.ts'
import { anvilBinary } from './anvil.ts'
import { startLocalChain } from './devchain.ts'
import { deployLocal } from './deploy.ts'
import { testFolder } from '../../../test/support/folder.ts'
import { mintLocally, type PinnedRead, pinnedReads } from '../../../test/support/local-reads.ts'
import { until } from '../../../test/support/wait.ts'
import { createRpcClient } from '../rpc/client.ts'

describe('the local chain', () => {
  const lines: string[] = []
  const log = createLog((line) => lines.push(line))
  const root = testFolder()
  let dataDir: string
  const home = process.env['HOME']
  const start = () => startLocalChain({ dataDir, log })
  const pidOfAnvil = async () =>
    (JSON.parse(await readFile(join(dataDir, 'chain/anvil.pid'), 'utf8')) as { anvil: number }).anvil

  before(async () => {
    process.env['HOME'] = join(root, 'home')
  })
  beforeEach(() => void (dataDir = testFolder()))
  after(async () => {
    assert.ok(!existsSync(join(root, 'home')), 'anvil wrote into the home folder')
    process.env['HOME'] = home
  })

  /** A chain with a few mints, and what it answers at each block. */
  async function filledChain() {
    const chain = await start()
    await deployLocal({ rpcUrl: chain.url })
    for (let count = 0; count < 4; count += 1) await mintLocally(chain.url)
    return { chain, reads: await pinnedReads(chain.url) }
  }

  async function answersTheSame(reads: readonly PinnedRead[]): Promise<void> {
    const chain = await start()
    try {
      assert.deepEqual(await pinnedReads(chain.url), reads)
      await mintLocally(chain.url)
      assert.equal((await pinnedReads(chain.url)).length, reads.length + 1, 'a new block follows the old ones')
    } finally {
      await chain.close()
    }
  }

  it('keeps blocks, pinned calls and proofs over a close', async () => {
    const { chain, reads } = await filledChain()
    const pid = await pidOfAnvil()
    await chain.close()
    assert.ok(!isAlive(pid))
    assert.deepEqual((await readdir(join(dataDir, 'chain'))).toSorted(), ['chain.json.gz', 'chain.previous.json.gz'])
    await answersTheSame(reads)
  })

  it('mines transactions that wait for a nonce that is used already', async () => {
    const chain = await start()
    const rpc = createRpcClient({ url: chain.url })
    const [account] = publishedAccounts(1)
    assert.ok(account)
    const signed = await Promise.all([5, 6].map((nonce) => account.signTransaction(paymentOf(account.address, nonce))))
    const hashes = await Promise.all(signed.map((raw) => rpc('eth_sendRawTransaction', [raw])))
    // As when the block with nonce 4 comes while anvil adds the transaction with nonce 5.
    await rpc('anvil_setNonce', [account.address, '0x5'])
    for (const hash of hashes) await until(async () => (await rpc('eth_getTransactionReceipt', [hash])) !== null)
    assert.deepEqual(await rpc('txpool_status', []), { pending: '0x0', queued: '0x0' })
    await chain.close()
  })

  it('keeps them when anvil is killed', async () => {
    const { chain, reads } = await filledChain()
    await chain.save()
    process.kill(await pidOfAnvil(), 'SIGKILL')
    await until(() => lines.some((line) => line.includes('ended by itself')))
    await chain.close()
    await answersTheSame(reads)
  })

  it('keeps them when the newest state file is cut or no state of anvil, and fails in one sentence when both are', async () => {
    const { chain, reads } = await filledChain()
    await chain.save()
    await chain.close()
    await truncate(join(dataDir, 'chain/chain.json.gz'), 1000)
    await answersTheSame(reads)
    await writeFile(join(dataDir, 'chain/chain.json.gz'), gzipSync('{"block":"none"}'))
    await answersTheSame(reads)
    for (const name of ['chain.json.gz', 'chain.previous.json.gz']) await truncate(join(dataDir, 'chain', name), 1000)
    await assert.rejects(start(), {
      message: /^The local chain saved in .* is damaged: restore that folder .* start anew\.$/,
    })
  })

  it('saves by itself soon after a block, and does not outlive a service that is killed', async () => {
    const service = spawn(process.execPath, ['-e', childProgram, dataDir], { stdio: ['ignore', 'pipe', 'inherit'] })
    const answer = await new Promise<string>((resolve) =>
      createInterface(service.stdout)
        .once('line', resolve)
        .once('close', () => resolve('')),
    )
    const reads = JSON.parse(answer) as PinnedRead[]
    const pid = await pidOfAnvil()
    await until(async () => (await savedHead(dataDir)) === reads.length)
    service.kill('SIGKILL')
    await until(() => !isAlive(pid))
    await answersTheSame(reads)
  })

  it('ends a leftover of a killed service, and nothing else', async () => {
    const folder = join(dataDir, 'chain')
    await mkdir(folder)
    const leftover = spawn(
      anvilBinary(),
      ['--silent', '--port', '0', '--prune-history', '--cache-path', join(folder, 'spill')],
      { stdio: 'ignore' },
    )
    const stranger = spawn(anvilBinary(), ['--silent', '--port', '0', '--prune-history'], { stdio: 'ignore' })
    try {
      for (const { pid } of [stranger, leftover]) {
        await writeFile(join(folder, 'anvil.pid'), JSON.stringify({ anvil: pid, service: 1_999_999_999 }))
        await (await start()).close()
      }
      await until(() => leftover.signalCode === 'SIGKILL')
      assert.ok(stranger.pid !== undefined && isAlive(stranger.pid))
    } finally {
      stranger.kill('SIGKILL')
      leftover.kill('SIGKILL')
    }
  })

  it('rejects a folder that a running service uses, and a port in use, in one sentence', async () => {
    const chain = await start()
    await assert.rejects(start(), {
      message: /^Process \d+ already runs the local chain in .*: stop it first, or choose another DATA_DIR\.$/,
    })
    await chain.close()
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    const rejected = startLocalChain({ dataDir, port, log })
    await assert.rejects(rejected, {
      message: new RegExp(`^Port ${port} on 127.0.0.1, meant for the local chain, is in use: .*\\.$`),
    })
    server.close()
  })

  it('names the package to install on a platform without anvil', () => {
    assert.throws(
      () => anvilBinary('plan9', 'x64'),
      /needs the npm package @foundry-rs\/anvil-plan9-amd64, which is not installed\./,
    )
  })

  it('does not step back in time when its clock was moved ahead', async () => {
    const chain = await start()
    await deployLocal({ rpcUrl: chain.url })
    await createRpcClient(chain)('evm_increaseTime', [5000])
    await mintLocally(chain.url)
    await chain.close()
    const again = await start()
    await mintLocally(again.url)
    const rpc = createRpcClient(again)
    const times = await Promise.all(
      ['0x1', '0x2', '0x3'].map(async (number) =>
        BigInt(((await rpc('eth_getBlockByNumber', [number, false])) as { timestamp: string }).timestamp),
      ),
    )
    const [first = 0n, second = 0n, third = 0n] = times
    assert.ok(first + 4990n < second && second < third, times.join(' '))
    await again.close()
  })

  it('mines by the clock when asked to', async () => {
    await using opened = new AsyncDisposableStack()
    const chain = opened.adopt(await startLocalChain({ dataDir, log, blockTimeMs: 100 }), (it) => it.close())
    const rpc = createRpcClient({ url: chain.url })
    const headOf = async () => Number(await rpc('eth_blockNumber'))
    const first = await headOf()
    await until(async () => (await headOf()) > first + 1)
  })
})

/** A transaction of one wei of `to` to itself. */
function paymentOf(to: Hex, nonce: number) {
  const fees = { maxFeePerGas: 3_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n }
  return { type: 'eip1559', chainId: 84532, nonce, gas: 21_000n, ...fees, to, value: 1n } as const
}

const childProgram = `
import { startLocalChain } from '${new URL('./devchain.ts', import.meta.url).href}'
import { deployLocal } from '${new URL('./deploy.ts', import.meta.url).href}'
import { mintLocally, pinnedReads } from '${new URL('../../../test/support/local-reads.ts', import.meta.url).href}'
import { gunzipSync } from 'node:zlib'
import { createLog } from '${new URL('../../lib/log.ts', import.meta.url).href}'
const chain = await startLocalChain({ dataDir: process.argv.at(-1), log: createLog(() => {}) })
await deployLocal({ rpcUrl: chain.url })
await mintLocally(chain.url)
const reads = await pinnedReads(chain.url)
process.stdout.write(JSON.stringify(reads) + '\\n')
`

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Number of the newest block on disk. */
async function savedHead(dataDir: string): Promise<number> {
  const bytes = await readFile(join(dataDir, 'chain/chain.json.gz')).catch(() => undefined)
  if (bytes === undefined) return -1
  return Number((JSON.parse(gunzipSync(bytes).toString('utf8')) as { best_block_number: string }).best_block_number)
}

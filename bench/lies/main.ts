/**
 * `npm run check:lies`: what lying providers can do to a verdict, in each trust mode. Each read meets one random mutation of one answer;
 * its verdict is held against the chain at the block that it names. Exit code 1 for a wrong verdict in `quorum` or `proof`, or for one in
 * `rpc` that is no lie inside the value itself.
 *
 * `--mutations 2000` for each mode; `--seed 1`; `--plant` ignores the trust modes, so that the check must fail.
 */
import { readOptions } from '../../scripts/options.ts'
import { type Hex, verdictChainId, wordOfRecord } from '@touchstone/verdict'
import { decodeFunctionResult, encodeFunctionData, keccak256, toHex } from 'viem'
import { createAssetReader } from '../../service/src/chain/assets/reader.ts'
import { createChainSource } from '../../service/src/chain/rpc/source.ts'
import { assetRegistryAbi as abi } from '../../service/src/domain/registry-abi.ts'
import { ServiceError } from '../../service/src/lib/errors.ts'
import { startFaultRpc } from '../../service/test/support/fault-rpc.ts'
import { silentLog, startRegistry } from '../../service/test/support/reader/anvil.ts'
import { bounded } from '../lib/bounded.ts'
import { createRandom, startLiar } from './liar.ts'

const { values } = readOptions({
  options: {
    mutations: { type: 'string', default: '2000' },
    seed: { type: 'string', default: '1' },
    plant: { type: 'boolean', default: false },
  },
})
const mutations = Number(values.mutations)
if (!Number.isInteger(mutations) || mutations < 1)
  throw new Error('--mutations is a whole number from 1, such as 2000.')

const modes = ['rpc', 'quorum', 'proof'] as const
type Mode = (typeof modes)[number]
const lanes = 8
const tokens = 40n

type Tally = { right: number; refused: number; inValue: number; wrong: string[] }

const noHash: Hex = `0x${'0'.repeat(64)}`
const noAsset = 'no asset'
const tagOf = (tokenId: bigint): Hex => keccak256(toHex(tokenId))

/** Everything that a verdict is made of. */
function textOf(id: bigint, word: bigint, metadata: Hex, block: { number: bigint; timestamp: bigint }): string {
  return `${id} ${word.toString(16)} ${metadata} at ${block.number} ${block.timestamp}`
}

await bounded(600_000, async (made) => {
  const chain = await startRegistry()
  made.defer(() => chain.close())
  const honest = await startFaultRpc({ target: chain.url })
  made.defer(() => honest.close())
  await chain.mintMany(Number(tokens))
  for (let id = 1n; id <= tokens; id += 2n) await chain.send('bindTag', [id, tagOf(id)])
  await chain.mine(3)
  for (let id = 1n; id <= tokens; id += 4n) await chain.send('flag', [id, 0x02, `0x${'00'.repeat(32)}`])
  await chain.mine(3)

  /** Returns what the chain itself holds of a token at a block, as text. Returns null where the block is not the chain's. */
  async function truthAt(tokenId: bigint, hash: Hex): Promise<string | null> {
    const data = encodeFunctionData({ abi, functionName: 'getAssetsWithMetadata', args: [[tokenId]] })
    const [answer, block] = await Promise.all([
      chain.rpc('eth_call', [{ to: chain.contract, data }, { blockHash: hash }]).catch(() => null),
      chain.rpc('eth_getBlockByHash', [hash, false]) as Promise<{ number: Hex; timestamp: Hex } | null>,
    ])
    if (answer === null || block === null) return null
    const [[word = 0n], [metadata]] = decodeFunctionResult({
      abi,
      functionName: 'getAssetsWithMetadata',
      data: answer as Hex,
    })
    return textOf(tokenId, word, metadata ?? noHash, {
      number: BigInt(block.number),
      timestamp: BigInt(block.timestamp),
    })
  }

  const tally: Record<Mode, Tally> = {
    rpc: { right: 0, refused: 0, inValue: 0, wrong: [] },
    quorum: { right: 0, refused: 0, inValue: 0, wrong: [] },
    proof: { right: 0, refused: 0, inValue: 0, wrong: [] },
  }
  const random = createRandom(Number(values.seed))

  /** Reads one token through providers of which the first lies once. Returns false when the lie met no request. */
  async function readOnce(mode: Mode, liar: Awaited<ReturnType<typeof startLiar>>): Promise<boolean> {
    const tokenId = BigInt(1 + random.below(Number(tokens) + 3))
    const byTag = random.below(3) === 0
    const lie = liar.prepare()
    const trust = values.plant ? 'rpc' : mode
    const options = {
      rpcUrls: mode === 'quorum' && !values.plant ? [lie.url, chain.url, honest.url] : [lie.url],
      contract: chain.contract,
      chainId: verdictChainId,
      blockTag: 'latest',
      trust,
      quorum: 2,
      maxHeadAgeSeconds: 0,
      attemptTimeoutMs: 20_000,
      readTimeoutMs: 30_000,
      log: silentLog,
      interface: 'registry',
      codeHash: chain.codeHash,
      cache: 'off',
      cacheEntries: 1,
    } as const
    await using opened = new AsyncDisposableStack()
    const source = opened.adopt(createChainSource(options), (it) => it.close())
    const reader = opened.adopt(createAssetReader({ ...options, source }), (it) => it.close())
    try {
      const { asset, block } = await (byTag ? reader.readByTag(tagOf(tokenId)) : reader.read(tokenId))
      if (lie.made() === null) return false
      const isTagged = tokenId <= tokens && tokenId % 2n === 1n
      const truth = byTag && !isTagged ? noAsset : await truthAt(tokenId, block.hash)
      const said = asset && textOf(asset.tokenId, wordOfRecord(asset.record), asset.metadataHash ?? noHash, block)
      if (truth === (said ?? noAsset)) tally[mode].right += 1
      else if (mode === 'rpc' && lie.made()?.inValue === true) tally[mode].inValue += 1
      else tally[mode].wrong.push(`token ${tokenId}, ${lie.made()?.what}: ${said}, not ${truth}`)
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      if (lie.made() === null) return false
      tally[mode].refused += 1
    }
    return true
  }

  for (const mode of modes) {
    const began = performance.now()
    let left = mutations
    await Promise.all(
      Array.from({ length: lanes }, async () => {
        const liar = await startLiar(chain.url, random)
        // The plant has shown what it is for with its first wrong verdict.
        while (left > 0 && !(values.plant && tally[mode].wrong.length > 0)) {
          left -= 1
          if (!(await readOnce(mode, liar))) left += 1
          else if (left % 500 === 0 && left > 0) console.log(`${mode}: ${mutations - left} of ${mutations} mutations`)
        }
        await liar.close()
      }),
    )
    const { right, refused, inValue, wrong } = tally[mode]
    const seconds = ((performance.now() - began) / 1000).toFixed(0)
    const inside = mode === 'rpc' ? `, ${inValue} lies inside the value` : ''
    console.log(
      `${mode}: ${right} right, ${refused} refused${inside}, ${wrong.length} wrong, of ${mutations - left} in ${seconds} s`,
    )
    for (const line of wrong.slice(0, 5)) console.log(`  wrong: ${line}`)
  }
  const wrong = modes.reduce((sum, mode) => sum + tally[mode].wrong.length, 0)
  if (wrong > 0) throw new Error(`${wrong} wrong verdicts.`)
})

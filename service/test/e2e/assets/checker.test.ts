/**
 * The checker of spec §2.2: every answer is compared with the chain at the block that the answer names. Blocks come as fast
 * as the machine makes them, about 1 % of the tokens change in each, 256 readers ask, and the chain is reorganised again
 * and again, 1 to 10 blocks deep. Answers to check: `--answers 100000` or CHECKER_ANSWERS, 10,000 by default.
 */
import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { type Hex, wordOfRecord } from '@touchstone/verdict'
import { decodeFunctionResult, encodeFunctionData, keccak256, toHex } from 'viem'
import { assetRegistryAbi as abi } from '../../../src/domain/registry-abi.ts'
import { readerOver, startRegistry } from '../../support/reader/anvil.ts'
import type { AssetReader, AssetReading } from '../../../src/chain/assets/reader.ts'
import { unsteady } from '../../support/reader/unsteady.ts'
import { useOpened } from '../../support/opened.ts'

const wanted = answersWanted()
const tokens = 300
const changesPerBlock = 3
const depths = 10
/** Ids beyond the tokens are asked for too. */
const askedIds = tokens + 10
const blockMs = 25

type Write = readonly [name: 'flag' | 'resolve' | 'setMetadataHash', args: readonly unknown[]]

/** The state of the chain at each block that ever was canonical: by block hash, one text a token. */
type Model = Map<Hex, readonly string[]>

const groups = [
  { name: 'events, head renewed every 200 ms', readers: 96, options: { cache: 'events' } },
  {
    name: 'events, head renewed every 20 ms',
    readers: 96,
    options: { cache: 'events', headRefreshMs: 20, headMaxAgeMs: 100 },
  },
  { name: 'head, renewed every 50 ms', readers: 64, options: { cache: 'head', headRefreshMs: 50, headMaxAgeMs: 100 } },
] as const

describe(`the checker over ${wanted} answers`, () => {
  const chain = useOpened(startRegistry)
  const model: Model = new Map()
  const run = { blocks: 0, reorgs: 0, over: false, answers: 0, wrong: [] as string[], unavailable: 0 }

  before(async () => {
    await chain.mintMany(tokens)
    for (let id = 2n; id <= tokens; id += 2n) await chain.send('bindTag', [id, keccak256(toHex(id))])
    while (((await chain.rpc('txpool_status')) as { pending: Hex }).pending !== '0x0') await chain.mine()
    await chain.mine(depths)
    await record(depths)
  })

  it('finds none that is wrong', async () => {
    const teams = groups.map((group) => ({
      ...group,
      reader: readerOver(chain, { cacheEntries: 200, disturb: unsteady, ...group.options }),
      answers: 0,
    }))
    const pending: { text: string; tokenId: bigint; hash: Hex }[] = []
    const [mining, ...reading] = [
      grow(pending),
      ...teams.flatMap((team) => Array.from({ length: team.readers }, () => ask(team, pending))),
    ]
    await Promise.all([mining, ...reading])
    check(pending, true)

    let followed = 0
    for (const { name, reader, answers } of teams) {
      const { upstreamCalls, hits, reorgs, flushes, followFailures, audits, auditFailures, mode } = reader.stats()
      const perThousand = ((1000 * upstreamCalls) / answers).toFixed(1)
      say(
        `${name}: ${answers} answers, ${perThousand} upstream calls per 1,000, ${hits} from the cache; ${reorgs} reorgs followed, ${flushes} flushes, ${followFailures} failures, ${audits} audits`,
      )
      assert.equal(auditFailures, 0)
      assert.equal(mode, name.startsWith('events') ? 'events' : 'head')
      followed += reorgs
    }
    say(
      `${run.blocks} blocks, ${run.reorgs} reorganisations, ${run.unavailable} answers CHAIN_UNAVAILABLE, ${run.wrong.length} wrong of ${run.answers}`,
    )
    assert.deepEqual(run.wrong, [])
    assert.ok(followed >= depths / 2, `${followed} reorganisations reached a reader`)
    assert.ok(run.answers >= wanted && run.reorgs >= depths && run.unavailable <= run.answers / 100)
  })

  /** Asks as a host does: what it holds and is live is shown at the head, everything else is read. */
  async function ask(
    team: { reader: Pick<AssetReader, 'read' | 'head'>; answers: number },
    pending: { text: string; tokenId: bigint; hash: Hex }[],
  ) {
    const held = new Map<bigint, AssetReading['asset']>()
    while (!run.over) {
      const tokenId = BigInt(1 + Math.floor(askedIds * Math.random() ** 3))
      const asset = held.get(tokenId)
      const head = asset?.current === true ? team.reader.head() : undefined
      try {
        const answer =
          asset !== undefined && head !== undefined ? { asset, block: head } : await team.reader.read(tokenId)
        held.set(tokenId, answer.asset)
        assert.equal(answer.asset.tokenId, tokenId)
        pending.push({ text: textOf(answer.asset), tokenId, hash: answer.block.hash })
        team.answers++
      } catch (error) {
        if ((error as { code?: string }).code !== 'CHAIN_UNAVAILABLE') throw error
        run.unavailable++
      }
      await wait(Math.random() * 200)
    }
  }

  /** Makes blocks until enough answers are checked and every depth had its reorganisation. */
  async function grow(pending: { text: string; tokenId: bigint; hash: Hex }[]): Promise<void> {
    try {
      while (run.answers < wanted || run.reorgs < depths) {
        const begun = performance.now()
        const parent = await chain.blockHash()
        for (const [name, args] of writesAfter(parent, changesPerBlock)) await chain.send(name, args)
        await chain.mine()
        await record(1)
        run.blocks++
        if (run.blocks % 8 === 0) await reorganise(1 + (run.reorgs % depths))
        check(pending, false)
        await wait(blockMs - (performance.now() - begun))
      }
    } finally {
      run.over = true
    }
  }

  async function reorganise(depth: number): Promise<void> {
    const ancestor = await chain.blockHash((await chain.blockNumber()) - BigInt(depth))
    const writes = writesAfter(ancestor, changesPerBlock * depth)
    const placed = writes.map(([name, args], index): [...Write, number] => [name, args, index % depth])
    await chain.reorg(depth, placed)
    await record(depth)
    run.reorgs++
  }

  /** Changes that are possible after a block, to as many tokens. They are flags of those with a tag, metadata of the others. */
  function writesAfter(hash: Hex, count: number): Write[] {
    const ids = new Set<number>()
    while (ids.size < count) ids.add(1 + Math.floor(tokens * Math.random() ** 2))
    return [...ids].map((id) => {
      if (id % 2 === 1) return ['setMetadataHash', [BigInt(id), keccak256(toHex(Math.random().toString()))]]
      const isFlagged = model.get(hash)?.[id]?.startsWith('5') === true
      return [isFlagged ? 'resolve' : 'flag', [BigInt(id), 2, `0x${'00'.repeat(32)}`]]
    })
  }

  /** Keeps what the last blocks hold, read by another decoder. */
  async function record(blocks: number): Promise<void> {
    const ids = Array.from({ length: askedIds }, (_, index) => BigInt(index + 1))
    const data = encodeFunctionData({ abi, functionName: 'getAssetsWithMetadata', args: [ids] })
    const head = await chain.blockNumber()
    for (let number = head - BigInt(blocks) + 1n; number <= head; number++) {
      const blockHash = await chain.blockHash(number)
      const result = (await chain.rpc('eth_call', [{ to: chain.contract, data }, { blockHash }])) as Hex
      const [words, hashes] = decodeFunctionResult({ abi, functionName: 'getAssetsWithMetadata', data: result })
      model.set(blockHash, [
        '',
        ...words.map((word, index) => `${(word >> 224n) & 0xffn} ${word.toString(16)} ${hashes[index]}`),
      ])
    }
  }

  /** Blocks that are recorded later are waited for, but not for ever. */
  function check(pending: { text: string; tokenId: bigint; hash: Hex }[], all: boolean): void {
    for (const answer of pending.splice(0)) {
      const truth = model.get(answer.hash)?.[Number(answer.tokenId)]
      if (truth === undefined && !all) {
        pending.push(answer)
        continue
      }
      run.answers++
      if (truth !== answer.text)
        run.wrong.push(`token ${answer.tokenId} at ${answer.hash}: ${answer.text}, chain ${truth}`)
    }
  }
})

function textOf({ record, metadataHash }: AssetReading['asset']): string {
  return `${record.state} ${wordOfRecord(record).toString(16)} ${metadataHash ?? `0x${'00'.repeat(32)}`}`
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)))
}

function answersWanted(): number {
  const at = process.argv.indexOf('--answers')
  return Number((at > 0 ? process.argv[at + 1] : process.env['CHECKER_ANSWERS']) ?? 10_000)
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

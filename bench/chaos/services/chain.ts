/**
 * The chain under a fleet. anvil makes a block every half second and changes records in each. Two providers in front of it can misbehave.
 * Another decoder reads what every block held, so that each answer can be compared at its own block, orphaned or not.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { recordOfWord, verdictOf, type Hex, type Verdict } from '@touchstone/verdict'
import { decodeFunctionResult, encodeFunctionData, keccak256, toHex } from 'viem'
import { assetRegistryAbi as abi } from '../../../service/src/domain/registry-abi.ts'
import { createTurns } from '../../../service/test/support/reader/unsteady.ts'
import { publishedAddresses } from '../../../service/src/domain/published-accounts.ts'
import { startAnvil } from '../../../service/src/chain/devchain/anvil.ts'
import { deployLocal } from '../../../service/src/chain/devchain/deploy.ts'
import { installTestMoney, type Fund } from '../../../service/src/chain/devchain/test-money.ts'
import { createRpcClient } from '../../../service/src/chain/rpc/client.ts'
import { startFaultRpc } from '../../../service/test/support/fault-rpc.ts'

const blockMs = 500
/** Writes of each kind in a block. */
const changesPerBlock = 2
const noReason: Hex = `0x${'00'.repeat(32)}`
const [admin, , , , , changer] = publishedAddresses as [Hex, Hex, Hex, Hex, Hex, Hex]

export type FleetChain = Awaited<ReturnType<typeof startFleetChain>>

/**
 * Tokens 1, 2, 3 … are minted to the first published account. The first of them carry the tags with these commitments. Payers get their
 * money and the accounts of `gas` ether.
 */
export async function startFleetChain({
  tokens,
  tagHashes,
  payers,
  gas,
}: {
  readonly tokens: number
  readonly tagHashes: readonly Hex[]
  readonly payers: readonly Fund[]
  readonly gas: readonly Hex[]
}) {
  const folder = await mkdtemp(join(tmpdir(), 'touchstone-fleet-chain-'))
  const anvil = await startAnvil({ folder, port: 0 })
  const rpc = createRpcClient({ url: anvil.url, timeoutMs: 20_000, maxBytes: 64 * 1024 * 1024 })
  const turns = createTurns()
  const held = new Map<string, readonly bigint[]>()
  const ids = Array.from({ length: tokens }, (_, index) => BigInt(index + 1))
  const flagged = new Set<bigint>()
  let mining: Promise<void> | undefined
  let pace = new AbortController()

  await rpc('anvil_setLoggingEnabled', [false])
  const { contract, codeHash } = await deployLocal({ rpcUrl: anvil.url })
  await prepare()
  await rpc('evm_setAutomine', [false])
  await mine()
  const inTurn = turns.inTurn(<T>(ask: () => Promise<T>) => ask()) as <T>(ask: () => Promise<T>) => Promise<T>
  const providers = [
    await startFaultRpc({ target: anvil.url, inTurn }),
    await startFaultRpc({ target: anvil.url, inTurn }),
  ] as const

  async function prepare(): Promise<void> {
    const metadata = ids.map((id) => keccak256(toHex(`product ${id}`)))
    for (let from = 0; from < tokens; from += 200)
      await send(admin, 'mintBatch', [admin, metadata.slice(from, from + 200)])
    for (const [index, tagHash] of tagHashes.entries()) await send(admin, 'bindTag', [BigInt(index + 1), tagHash])
    for (const role of ['GUARDIAN_ROLE', 'ISSUER_ROLE'])
      await send(admin, 'grantRole', [keccak256(toHex(role)), changer])
    await installTestMoney({ rpcUrl: anvil.url, fund: payers })
    for (const address of gas) await rpc('anvil_setBalance', [address, toHex(10n ** 20n)])
  }

  async function send(from: Hex, functionName: string, args: readonly unknown[]): Promise<void> {
    const data = encodeFunctionData({ abi, functionName, args } as never)
    await rpc('eth_sendTransaction', [
      { from, to: contract, data, gas: toHex(functionName === 'mintBatch' ? 20_000_000 : 500_000) },
    ])
  }

  /** Mines a block. No one reads the chain meanwhile: anvil would answer from the block that it is making. */
  function mine(): Promise<void> {
    return turns.alone(async () => {
      await rpc('evm_mine')
      await record(1)
    })
  }

  async function record(blocks: number): Promise<void> {
    const data = encodeFunctionData({ abi, functionName: 'getAssets', args: [ids] })
    const head = BigInt((await rpc('eth_blockNumber')) as Hex)
    for (let number = head - BigInt(blocks) + 1n; number <= head; number += 1n) {
      const { hash } = (await rpc('eth_getBlockByNumber', [toHex(number), false])) as { hash: Hex }
      const result = (await rpc('eth_call', [{ to: contract, data }, { blockHash: hash }])) as Hex
      held.set(hash, decodeFunctionResult({ abi, functionName: 'getAssets', data: result }) as readonly bigint[])
    }
  }

  async function change(): Promise<void> {
    for (let count = 0; count < changesPerBlock; count += 1) {
      const bound = BigInt(1 + Math.floor(Math.random() * tagHashes.length))
      await send(changer, flagged.has(bound) ? 'resolve' : 'flag', [bound, 2, noReason])
      if (!flagged.delete(bound)) flagged.add(bound)
      const other = ids[tagHashes.length + Math.floor(Math.random() * (tokens - tagHashes.length))]
      await send(changer, 'setMetadataHash', [other, keccak256(toHex(Math.random().toString()))])
    }
  }

  async function keepMining(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const began = performance.now()
      await change()
      await mine()
      await delay(Math.max(0, blockMs - (performance.now() - began)))
    }
  }

  return {
    rpc,
    contract,
    codeHash,
    providers,
    url: anvil.url,
    tokens,
    begin(): void {
      pace = new AbortController()
      mining ??= keepMining(pace.signal)
    },
    async pause(): Promise<void> {
      pace.abort()
      await mining
      mining = undefined
    },
    mine,
    /** Makes these blocks at once, each with changes; only while no others are made, whose changes have the same sender. */
    advance: (blocks: number) =>
      turns.alone(async () => {
        for (let made = 0; made < blocks; made += 1) {
          await change()
          await rpc('evm_mine')
        }
        await record(blocks)
      }),
    /** Replaces the last blocks by empty ones; their transactions are gone. */
    reorg: (depth: number) =>
      turns.alone(async () => {
        await rpc('anvil_reorg', [depth, []])
        await record(depth)
        flagged.clear() // which of them are flagged now is not known: a change that reverts does no harm
      }),
    /** The record of a token at a block, as a verdict without supplier's text. Undefined for a block that never was. */
    truth(tokenId: bigint, block: { readonly number: bigint; readonly hash: Hex }): Verdict | null | undefined {
      const record = recordOfWord(held.get(block.hash)?.[Number(tokenId) - 1] ?? 0n)
      if (record === null || !held.has(block.hash)) return undefined
      return verdictOf({ record, tokenId, block, contract, chainId: 84532 })
    },
    async close(): Promise<void> {
      pace.abort()
      await mining?.catch(() => {})
      for (const provider of providers) await provider.close()
      await anvil.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/**
 * Repairs anvil's pool. It can add a transaction while the block with the nonce before it is mined: that transaction then waits for a nonce
 * that was used already and holds up all that follow it.
 */
import type { Hex } from '@touchstone/verdict'
import { sleep } from '../../lib/async/sleep.ts'
import { reasonOf } from '../../lib/errors.ts'
import type { Log } from '../../lib/log.ts'
import type { RpcClient } from '../rpc/client.ts'

/** A transaction that could be mined and stays in the pool for so long, in milliseconds, is stuck. */
const stuckAfterMs = 1_000

type Pool = Readonly<Record<'pending' | 'queued', Readonly<Record<Hex, Readonly<Record<string, { hash: Hex }>>>>>>

/** Looks every second until `stop`, while anvil mines each transaction at once. */
export function startPoolRepair(rpc: RpcClient, log: Log) {
  const stopped = new AbortController()
  let before: ReadonlySet<Hex> = new Set()

  /** Frees what could be mined at this look and at the one before. */
  async function look(): Promise<void> {
    const { pending, queued } = (await rpc('txpool_status', [])) as Record<keyof Pool, Hex>
    const isEmpty = Number(pending) + Number(queued) === 0
    // Blocks come by another way while automatic mining is off.
    if (isEmpty || (await rpc('anvil_getAutomine', [])) !== true) return void (before = new Set())
    const pool = (await rpc('txpool_content', [])) as Pool
    const ready = Object.values(pool.pending).flatMap((byNonce) => Object.values(byNonce).map(({ hash }) => hash))
    const blocked = await Promise.all(
      Object.entries(pool.queued).map(async ([account, byNonce]) => {
        const next = Number(await rpc('eth_getTransactionCount', [account, 'latest']))
        const nonces = Object.keys(byNonce).map(Number)
        return { account, nonces, hash: byNonce[String(next)]?.hash, byNonce }
      }),
    )
    const now = [...ready, ...blocked.flatMap(({ hash }) => hash ?? [])]
    const isStuck = (hash: Hex | undefined) => hash !== undefined && before.has(hash)
    if (now.some(isStuck)) log.warn('local chain left transactions unmined', { count: now.filter(isStuck).length })
    if (ready.some(isStuck)) await rpc('evm_mine', [])
    for (const { account, nonces, hash, byNonce } of blocked) {
      if (!isStuck(hash)) continue
      const inOrder = nonces
        .toSorted((one, other) => one - other)
        .flatMap((nonce) => byNonce[String(nonce)]?.hash ?? [])
      const signed = await Promise.all(inOrder.map((each) => rpc('eth_getRawTransactionByHash', [each])))
      // anvil refuses bytes that its pool has: they leave it first.
      await rpc('anvil_removePoolTransactions', [account])
      for (const raw of signed)
        await rpc('eth_sendRawTransaction', [raw]).catch((error: unknown) => {
          log.warn('local chain refuses a transaction of its pool', { reason: reasonOf(error) })
        })
    }
    before = new Set(now)
  }

  async function run(): Promise<void> {
    while (!stopped.signal.aborted) {
      await look().catch((error: unknown) => log.debug('pool of the local chain not read', { reason: reasonOf(error) }))
      await sleep(stuckAfterMs, { signal: stopped.signal, ref: false })
    }
  }

  const running = run()
  return async function stop(): Promise<void> {
    stopped.abort()
    await running
  }
}

/**
 * The only writer to the registry (spec §4.9): each request is executed at most once, whatever crashes. A transaction is stored before
 * it is sent; nonces come from the store's row lock; a transaction that is not mined is sent again, byte for byte.
 */
import type { Hex } from '@touchstone/verdict'
import type { LocalAccount } from 'viem'
import { encodePacked, keccak256 } from 'viem/utils'
import { type Actor, localActor } from '../../db/audit.ts'
import { createKeyedQueue } from '../../lib/async/concurrency.ts'
import type { Log } from '../../lib/log.ts'
import { isPublishedAddress } from '../../domain/published-accounts.ts'
import { assetRegistryAbi as abi } from '../../domain/registry-abi.ts'
import { type OperatorRole, writeCallOf, type WriteRequest } from './calls.ts'
import { writeFailure, type WriteFailure } from './failures.ts'
import { awaitOutcome, type Mined, parseOutcome, minedOutcome, send } from './outcome.ts'
import { createRecovery } from './recovery.ts'
import type { Guard, OperationStore, Operation } from './operations.ts'
import type { RpcClient } from '../rpc/client.ts'
import { readContract } from '../rpc/contract.ts'
import { throwChainUnavailable } from '../../lib/errors.ts'
import { feeLimit, prepare, signTransaction } from './transaction.ts'
import { registryTypedData } from './typed-data.ts'

/** Writes whose requests to the chain are under way at one time. */
const slots = 8

export type OperatorKeys = Readonly<Partial<Record<OperatorRole, LocalAccount>>>

export type WriterOptions = Readonly<{
  rpc: RpcClient
  contract: Hex
  chainId: number
  keys: OperatorKeys
  operations: OperationStore
  log: Log
  /** The chain is this machine's anvil: only there its published keys may sign. */
  local?: boolean
  /** Time that a write waits to be mined before it returns PENDING. */
  receiptWaitMs?: number
  /** Age from which a repeated transaction that is not mined gets higher fees. */
  stuckAfterMs?: number
  /** Called with the block of every mined write, so that caches of an older head are dropped. */
  onMined?: (blockNumber: bigint) => void
  /** Wei per gas; the highest fee that is signed. Default: 100 gwei. */
  maxFeePerGas?: bigint
}>

/**
 * `by` is who requests the write; left out, the user of this process. Nothing is signed where `guard` returns false: WITHDRAWN. `terms`
 * are values beside the call that stay the same under one key.
 */
export type WriteOptions = Readonly<{
  idempotencyKey: string
  by?: Actor
  guard?: Guard | undefined
  terms?: string | undefined
}>

/** `repeated`: the key was used for this very request before. */
export type WriteResult =
  | (Mined & Readonly<{ ok: true; status: 'CONFIRMED'; repeated: boolean }>)
  | Readonly<{ ok: true; status: 'PENDING'; txHash: Hex; repeated: boolean }>
  | WriteFailure

/** `tagHash` is the commitment of the tapped chip, which must be the token's. The demonstration claims without a tap, and has none. */
type TappedClaim = Readonly<{
  tokenId: bigint
  tagHash: Hex | undefined
  claimant: Hex
  tapCounter: number
  deadline: bigint
}>

/** `nonce` is the one that the claimant's ClaimConsent signs too. */
type ClaimAttestation = Readonly<{ ok: true; attester: Hex; attesterSignature: Hex; nonce: number }>

export type Writer = ReturnType<typeof createWriter>

/** Throws one sentence when a key is one of anvil's published ones and the chain is not the local one. */
export function createWriter(options: WriterOptions) {
  const { rpc, contract, chainId, keys, operations, log, receiptWaitMs = 10_000 } = options
  const { stuckAfterMs = 60_000, maxFeePerGas = feeLimit } = options
  rejectPublishedKeys(keys, options.local ?? false)
  const recovery = createRecovery({ rpc, contract, chainId, keys, operations, log, stuckAfterMs, maxFeePerGas })
  const closed = new AbortController()
  const running = new Set<Promise<unknown>>()
  /** Keys whose transaction this process is sending, or has sent and awaits. */
  const underway = new Set<string>()
  // Many writes at once must not make one another miss the deadline of a request.
  const inSlot = createKeyedQueue<number>()
  let slot = 0
  // One at a time for each signer. Writers that wait for the row lock would hold all connections of the database.
  const inTurn = createKeyedQueue<Hex>()

  /**
   * Executes a request. A rejection by the contract is a value and is not kept under the key; a signed transaction is kept.
   * Throws CHAIN_UNAVAILABLE when nothing was signed because the chain did not answer.
   */
  function write(request: WriteRequest, options: WriteOptions): Promise<WriteResult> {
    return awaitedByClose(once(request, options))
  }

  /** Returns the most gas that a request would cost now, or why the contract would reject it. Sends nothing. Throws CHAIN_UNAVAILABLE. */
  function simulate(request: WriteRequest): Promise<Readonly<{ ok: true; gas: bigint }> | WriteFailure> {
    return awaitedByClose(estimate(request))
  }

  function awaitedByClose<T>(work: Promise<T>): Promise<T> {
    const tracked = work.finally(() => running.delete(tracked))
    running.add(tracked)
    return tracked
  }

  async function estimate(request: WriteRequest): Promise<Readonly<{ ok: true; gas: bigint }> | WriteFailure> {
    const call = callOf(request)
    if ('ok' in call) return call
    const prepared = await prepare(rpc, { from: addressOf(call.account), to: contract, data: call.data }, maxFeePerGas)
    return prepared.ok ? { ok: true, gas: prepared.gas } : prepared
  }

  async function once(
    request: WriteRequest,
    { idempotencyKey: key, by = localActor(), guard, terms }: WriteOptions,
  ): Promise<WriteResult> {
    const call = callOf(request)
    if ('ok' in call) return call
    const { account, data } = call
    const signer = addressOf(account)
    const callHash = keccak256(encodePacked(['uint256', 'address', 'bytes'], [BigInt(chainId), contract, data]))
    const requestHash =
      terms === undefined ? callHash : keccak256(encodePacked(['bytes32', 'string'], [callHash, terms]))
    const hashes = [requestHash, callHash] // operations of earlier versions have no terms
    const known = await operations.find(key)
    if (known !== undefined) return repeat(known, hashes, by)

    const prepared = await inSlot(slot++ % slots, () =>
      prepare(rpc, { from: signer, to: contract, data }, maxFeePerGas),
    )
    if (!prepared.ok) {
      // The same request may have been mined since, and be rejected for that reason.
      const meanwhile = await operations.find(key)
      return meanwhile === undefined ? prepared : repeat(meanwhile, hashes, by)
    }
    const { gas, fees, nonce: fromNonce } = prepared
    const subject = 'tokenId' in request ? String(request.tokenId) : ''
    const sign = (nonce: bigint) => signTransaction(account, { chainId, to: contract, data, nonce, gas, fees })
    const appended = await inTurn(signer, () =>
      operations.append({ key, requestHash, kind: request.kind, signer, fromNonce, subject, by, guard }, sign),
    )
    if (appended === null) return writeFailure('WITHDRAWN')
    const { operation, added } = appended
    if (!added) return repeat(operation, hashes, by)
    underway.add(key)
    try {
      if (operation.nonce > fromNonce) await recovery.resendBefore(operation, fromNonce, underway)
      const sent = await send(rpc, operation, log)
      if (sent === 'unknown') underway.delete(key)
      return await settled(operation, sent === 'rejected' ? 0 : receiptWaitMs, false)
    } finally {
      underway.delete(key)
    }
  }

  async function repeat(operation: Operation, hashes: readonly Hex[], by: Actor): Promise<WriteResult> {
    if (!hashes.includes(operation.requestHash)) return writeFailure('IDEMPOTENCY_CONFLICT')
    await operations.replayed(operation.key, by)
    const known = await recovery.reopenIfLost(operation)
    if (known.status !== 'PENDING') return resultOf(known, true)
    const current = await recovery.revive(known).catch(throwChainUnavailable)
    return current.status === 'PENDING' ? settled(current, receiptWaitMs, true) : resultOf(current, true)
  }

  async function settled(operation: Operation, waitMs: number, repeated: boolean): Promise<WriteResult> {
    const hashes = await operations.hashes(operation.key)
    const outcome = await awaitOutcome(() => minedOutcome(rpc, hashes, contract), waitMs, closed.signal)
    if (outcome === undefined) return { ok: true, status: 'PENDING', txHash: operation.txHash, repeated }
    await operations.settle(operation.key, outcome.status, outcome.text)
    const result = resultOf({ ...operation, status: outcome.status, outcome: outcome.text }, repeated)
    if (result.ok && result.status === 'CONFIRMED') options.onMined?.(result.blockNumber)
    return result
  }

  function callOf(request: WriteRequest): { account: LocalAccount; data: Hex } | WriteFailure {
    const call = writeCallOf(request)
    if (call === null) return writeFailure('INVALID_REQUEST')
    const account = keys[call.role]
    return account === undefined ? writeFailure('OPERATOR_KEY_MISSING') : { account, data: call.data }
  }

  /**
   * Signs the attester's half of a claim: the claimant held the item (spec §3, CLAIMED). It signs for every tap: call it only after the
   * tap was verified and consumed. It fails with REFUSED where the token has another chip than `tagHash` of the tap, as after a reorganisation.
   */
  async function attestClaim(tap: TappedClaim): Promise<ClaimAttestation | WriteFailure> {
    const { tokenId, claimant, tapCounter, deadline } = tap
    const { attester } = keys
    if (attester === undefined) return writeFailure('OPERATOR_KEY_MISSING')
    const [tagHash, [, , nonce]] = await Promise.all([
      readContract(rpc, { to: contract, abi, functionName: 'getTagByToken', args: [tokenId] }),
      readContract(rpc, { to: contract, abi, functionName: 'pendingTransfer', args: [tokenId] }),
    ]).catch(throwChainUnavailable)
    if (tap.tagHash !== undefined && tap.tagHash !== tagHash) return writeFailure('REFUSED')
    const message = { tokenId, claimant, tagHash, tapCounter, nonce, deadline }
    const attesterSignature = await attester.signTypedData(registryTypedData({ chainId, contract }, 'Claim', message))
    return { ok: true, attester: attester.address, attesterSignature, nonce }
  }

  /** Ends writes that wait with PENDING. */
  async function close(): Promise<void> {
    closed.abort()
    await Promise.allSettled(running)
  }

  return { write, simulate, recover: recovery.recover, attestClaim, close }
}

/** Throws one sentence when a key is a published one. `local`: the chain is this machine's anvil. */
export function rejectPublishedKeys(keys: OperatorKeys, local: boolean): void {
  const published = Object.entries(keys).filter(([, account]) => isPublishedAddress(account.address))
  if (local || published.length === 0) return
  const roles = published.map(([role]) => role).join(', ')
  throw new Error(
    `The operator key of ${roles} is one of anvil's published keys, which anyone can use: configure a key of your own.`,
  )
}

function resultOf({ status, outcome, txHash }: Operation, repeated: boolean): WriteResult {
  if (status === 'PENDING' || outcome === null) return { ok: true, status: 'PENDING', txHash, repeated }
  const mined = parseOutcome({ status, text: outcome })
  return mined.ok ? { ...mined, repeated } : mined
}

function addressOf(account: LocalAccount): Hex {
  return account.address.toLowerCase() as Hex
}

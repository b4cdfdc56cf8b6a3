/** The offline proof of a verdict: a bundle that anyone can check without asking anybody. */
import { unavailable } from '../lib/errors.ts'
import type { Hex } from '../lib/hex.ts'
import { hasKeys, isObject } from '../lib/json.ts'
import type { RpcHeader } from '../proof/header.ts'
import type { EthProof } from '../proof/storage.ts'
import { createRpc } from '../rpc.ts'
import type { Verdict } from '../rules/verdict.ts'
import { checkChainId, checkStanding } from './block.ts'
import { claimedNumber, readClaim } from './claim.ts'
import { pinChecks, type Pins, resolvePins } from './deployments.ts'
import { askEndpoints, type Endpoints } from './endpoints.ts'
import { proofChecks } from './proof.ts'
import { type Check, compare, fails, type Report, reportOf, undecided } from './report.ts'

/** A verdict with everything that proves it under its block hash, as `GET /api/asset/{tokenId}/proof` answers it. */
export type ProofBundle = {
  version: '1'
  verdict: Verdict
  proof: {
    /** The block as `eth_getBlockByHash` returns it; transactions and the like may be left out. */
    header: RpcHeader
    accountProof: EthProof['accountProof']
    /** One entry, for the slot of the record (EIP-1186 `storageProof`). */
    storageProof: EthProof['storageProof']
    /** Slot of the mapping that holds the records: 3 in the registry. */
    recordsSlot: number
    /** keccak256 of the contract's code. */
    codeHash: Hex
  }
}

/** The block that a bundle is held against, beside the facts about the contract. */
export type BundlePins = Pins &
  Readonly<{
    /** The hash of the block, from a source you trust. Without it the report is `undecided`: anyone can make up a block. */
    blockHash?: Hex | undefined
  }>

/**
 * Checks a bundle of unknown origin, offline. Beside the form of the bundle it checks what `prove` checks, except that
 * the block is canonical: `blockHash` pins it. Contract, `codeHash` and `recordsSlot` are held
 * against what the caller pins, never against the bundle's own word alone, because a bundle about a contract of the
 * attacker's proves only that.
 */
export function checkProofBundle(bundle: unknown, pins: BundlePins = {}): Report {
  if (!isObject(bundle) || !hasKeys(bundle, ['version', 'verdict', 'proof'])) {
    return reportOf([fails('bundle', bundle, 'not an object of version, verdict and proof')])
  }
  const { version, verdict, proof } = bundle
  if (!isObject(proof) || !hasKeys(proof, ['header', 'accountProof', 'storageProof', 'recordsSlot', 'codeHash'])) {
    return reportOf([fails('bundle.proof', proof, 'not header, accountProof, storageProof, recordsSlot and codeHash')])
  }
  const { checks, claim } = readClaim(verdict)
  checks.push(compare('bundle.version', version, '1'))
  if (claim === null) return reportOf(checks)
  const { header, accountProof, storageProof } = proof as ProofBundle['proof']
  const resolved = resolvePins(claim.contract, pins)
  checks.push(...pinChecks(claim, pins, resolved), blockCheck(claim.blockHash, pins.blockHash))
  const { codeHash, recordsSlot } = resolved
  if (recordsSlot === null)
    return reportOf([
      ...checks,
      undecided('bundle.recordsSlot', proof['recordsSlot'], 'not published: give recordsSlot'),
    ])
  const proven = proofChecks(claim, header, { accountProof, storageProof }, { codeHash, recordsSlot })
  checks.push(
    compare('bundle.recordsSlot', proof['recordsSlot'], Number(recordsSlot)),
    ...proven.checks,
    compare('bundle.codeHash', proof['codeHash'], proven.codeHash ?? 'nothing proven'),
  )
  return reportOf(checks)
}

/**
 * Checks a bundle as `checkProofBundle` does, and reads from endpoints whether its block is part of the chain. They need no old state. Throws
 * `VerdictError` with `RPC_UNAVAILABLE` when too few can be asked.
 */
export async function recheckProofBundle(bundle: unknown, options: BundlePins & Endpoints): Promise<Report> {
  const offline = checkProofBundle(bundle, options)
  const claim = isObject(bundle) ? readClaim(bundle['verdict']).claim : null
  const number = claim && claimedNumber(claim)
  if (offline.outcome === 'differs' || claim === null || number === null) return offline
  return askEndpoints(options, async (url) => {
    const rpc = createRpc({ ...options, url })
    try {
      const chain = await checkChainId(rpc)
      const standing = await checkStanding(rpc, claim, number, options.maxAgeSeconds ?? Infinity)
      return reportOf([...offline.checks.filter(({ field }) => field !== 'block.canonical'), chain, ...standing])
    } catch (cause) {
      throw unavailable(cause)
    }
  })
}

function blockCheck(claimed: Hex, trusted: Hex | undefined): Check {
  return trusted === undefined
    ? undecided('block.canonical', claimed, 'not pinned: compare the block hash with a source you trust')
    : compare('block.canonical', claimed, trusted.toLowerCase())
}

/** The offline proof of a verdict: a bundle that anyone can check without asking anybody. */
import type { RpcHeader } from './block-header.ts'
import { readClaim } from './claim.ts'
import type { Hex } from './hex.ts'
import { hasKeys, isObject } from './json.ts'
import { proofChecks, type ProofPins } from './proof-checks.ts'
import { compare, fails, pin, type Report, reportOf } from './report.ts'
import type { EthProof } from './storage-proof.ts'
import type { Verdict } from './verdict.ts'

/** A verdict with everything that proves it under its block hash, as `GET /api/asset/{tokenId}/proof` answers it. */
export type ProofBundle = {
  version: '1'
  verdict: Verdict
  proof: {
    /** The block as `eth_getBlockByHash` gives it; transactions and the like may be left out. */
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

/**
 * Checks a bundle of unknown origin, offline. Beside the form of the bundle it checks what `prove` checks, except that
 * the block is canonical: compare `chainRef.block_hash` with a source you trust. `codeHash` and `recordsSlot` are held
 * against what the caller pins, never against the bundle's own word alone, because a bundle about a contract of the
 * attacker's proves only that.
 */
export function checkProofBundle(bundle: unknown, pins: ProofPins & { contract?: Hex | undefined } = {}): Report {
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
  const proven = proofChecks(claim, header, { accountProof, storageProof }, pins)
  checks.push(
    pin('contract', claim.contract, pins.contract),
    compare('bundle.recordsSlot', proof['recordsSlot'], Number(pins.recordsSlot ?? 3n)),
    ...proven.checks,
    compare('bundle.codeHash', proof['codeHash'], proven.codeHash ?? 'nothing proven'),
  )
  return reportOf(checks)
}

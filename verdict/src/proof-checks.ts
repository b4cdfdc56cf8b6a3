/** The checks that an online proof and an offline bundle share. */
import { recordOfWord } from './asset-record.ts'
import type { RpcHeader } from './block-header.ts'
import type { Claim } from './claim.ts'
import { compareRecord } from './compare-record.ts'
import type { Hex } from './hex.ts'
import { type Check, compare, fails, pin } from './report.ts'
import { type EthProof, type ProofStep, recordSlot, verifyStorageProof } from './storage-proof.ts'

/** Facts about the contract that the caller has from another source. */
export type ProofPins = Readonly<{
  /**
   * keccak256 of the contract's code, as published for the deployment. Without it the report says that the code was not
   * pinned.
   */
  codeHash?: Hex | undefined
  /** Slot of the mapping that holds the records: 3 in the registry. */
  recordsSlot?: bigint | undefined
}>

/** Checks the proof of the claim's record and compares the verdict; `codeHash` is the proven one. */
export function proofChecks(
  claim: Claim,
  header: RpcHeader,
  proof: EthProof,
  { codeHash, recordsSlot }: ProofPins,
): { checks: Check[]; codeHash: Hex | null } {
  const { tokenId, contract, blockHash } = claim
  const slot = recordSlot(tokenId, recordsSlot)
  const subjects: Record<ProofStep, string> = {
    header: blockHash,
    account: contract,
    code: codeHash ?? '',
    storage: slot,
  }
  const proven = verifyStorageProof({ header, blockHash, contract, codeHash, proof, slots: [slot] })
  if (!proven.ok)
    return { checks: [fails(`proof.${proven.step}`, subjects[proven.step], proven.reason)], codeHash: null }
  const checks = [
    compare('proof.header', blockHash, blockHash),
    compare('proof.account', contract, contract),
    pin('proof.code', codeHash, proven.codeHash),
    compare('proof.storage', slot, slot),
    ...compareRecord(claim, recordOfWord(proven.values[0] ?? 0n), header),
  ]
  return { checks, codeHash: proven.codeHash }
}

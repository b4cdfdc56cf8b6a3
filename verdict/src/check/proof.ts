/** The checks that an online proof and an offline bundle share. */
import { type Hex, word } from '../lib/hex.ts'
import type { RpcHeader } from '../proof/header.ts'
import { type EthProof, mappingSlot, type ProofStep, recordSlot, verifyStorageProof } from '../proof/storage.ts'
import { recordOfWord } from '../rules/record.ts'
import type { Claim } from './claim.ts'
import { metadataChecks } from './metadata.ts'
import { compareRecord } from './record.ts'
import { type Check, compare, fails, pin } from './report.ts'

/** Facts about the contract, and the metadata document when its hash is to be proven too. */
export type ProofFacts = Readonly<{
  codeHash: Hex | null
  recordsSlot: bigint
  metadata?: string | undefined
  metadataSlot?: bigint | undefined
}>

/** The slots that are proven: that of the record, and with a metadata document that of its hash. */
export function proofSlots({ tokenId }: Claim, { recordsSlot, metadata, metadataSlot = 7n }: ProofFacts): Hex[] {
  const record = recordSlot(tokenId, recordsSlot)
  return metadata === undefined ? [record] : [record, mappingSlot(tokenId, metadataSlot)]
}

/** Checks the proof of the claim's record and compares the verdict; `codeHash` is the proven one. */
export function proofChecks(
  claim: Claim,
  header: RpcHeader,
  proof: EthProof,
  facts: ProofFacts,
): { checks: Check[]; codeHash: Hex | null } {
  const { contract, blockHash } = claim
  const codeHash = facts.codeHash ?? undefined
  const slots = proofSlots(claim, facts)
  const storage = slots.join(', ')
  const subjects: Record<ProofStep, string> = { header: blockHash, account: contract, code: codeHash ?? '', storage }
  const proven = verifyStorageProof({ header, blockHash, contract, codeHash, proof, slots })
  if (!proven.ok)
    return { checks: [fails(`proof.${proven.step}`, subjects[proven.step], proven.reason)], codeHash: null }
  const [record = 0n, metadataHash = 0n] = proven.values
  const checks = [
    compare('proof.header', blockHash, blockHash),
    compare('proof.account', contract, contract),
    pin('proof.code', codeHash, proven.codeHash),
    compare('proof.storage', storage, storage),
    ...compareRecord(claim, recordOfWord(record), header),
  ]
  if (facts.metadata !== undefined) checks.push(...metadataChecks(claim, facts.metadata, `0x${word(metadataHash)}`))
  return { checks, codeHash: proven.codeHash }
}

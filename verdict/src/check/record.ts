/** The last step of every check: the verdict that follows from the record, held against the given one. */
import type { RpcHeader } from '../proof/header.ts'
import type { AssetRecord } from '../rules/record.ts'
import { verdictChainId, verdictOf } from '../rules/verdict.ts'
import { type Claim, compareWith } from './claim.ts'
import { type Check, fails } from './report.ts'

/** Compares the verdict with the one that follows from a record. */
export function compareRecord(claim: Claim, record: AssetRecord | null, header: RpcHeader): Check[] {
  const { tokenId, contract, blockHash, verdict } = claim
  if (record === null) return [fails('record', verdict['state'], 'no asset record of this contract at this block')]
  const block = { number: BigInt(String(header['number'])), hash: blockHash }
  const expected = verdictOf({ record, tokenId, block, contract, chainId: verdictChainId })
  return expected === null ? [fails('state', verdict['state'], 'NONE')] : compareWith(claim, expected)
}

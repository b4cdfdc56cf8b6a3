/**
 * Has parsed JSON the form of a verdict, and does it agree with itself (spec §2.1–§2.3)? Says nothing about the chain.
 */
import { isBytes } from '../lib/hex.ts'
import { isCount } from '../lib/json.ts'
import { checksumAddress } from '../rules/address.ts'
import { isStateCode, lifecycleStates } from '../rules/lifecycle.ts'
import { type Verdict, verdictChainId } from '../rules/verdict.ts'
import { readClaim } from './claim.ts'

/** True when every key is there, of the right type, and members that repeat or imply one another agree. */
export function isVerdict(value: unknown): value is Verdict {
  const { checks, claim } = readClaim(value)
  if (claim === null || checks.some(({ ok }) => !ok)) return false
  const { verdict, chainRef, contract } = claim
  const { state_code: code, flagged, authentic, owner_commitment: commitment } = verdict
  return (
    verdict['version'] === '1' &&
    isStateCode(code) &&
    code !== 0 &&
    verdict['state'] === lifecycleStates[code] &&
    typeof flagged === 'boolean' &&
    (flagged || code !== 5) &&
    authentic === (code <= 4 && !flagged) &&
    (commitment === null || isBytes(commitment, 32)) &&
    verdict['network'] === 'base-sepolia' &&
    verdict['audit_status'] === 'unaudited' &&
    verdict['production_ready'] === false &&
    chainRef['chain_id'] === verdictChainId &&
    chainRef['token_id'] === verdict['token_id'] &&
    contract === checksumAddress(contract) &&
    isCount(chainRef['block_number'])
  )
}

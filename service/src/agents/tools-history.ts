/** A token's history with the names of the wire (spec §4.3 `get_lifecycle_history`); no list ever stands for «could not look». */
import { lifecycleStates, type ChainRef, type LifecycleState, type StateCode } from '@touchstone/verdict'
import type { History, HistoryEvent } from '../asset/history.ts'
import type { LifecycleEvent, LifecycleHistory } from './schemas/tools.ts'

/** `chainRef` names the block up to which the history is complete. */
export function historyOf(history: History, chainRef: ChainRef): LifecycleHistory {
  return {
    version: '1',
    token_id: chainRef.token_id,
    available: history.available,
    ...(history.available
      ? { event_count: history.events.length, events: history.events.map(eventOf) }
      : { reason: history.reason, event_count: null, events: null }),
    chainRef,
    network: 'base-sepolia',
    audit_status: 'unaudited',
    production_ready: false,
  }
}

function eventOf(event: HistoryEvent): LifecycleEvent {
  const { fromState, toState, flags, actorCommitment, fromCommitment, toCommitment, metadataHash, tagHash } = event
  return {
    type: event.type,
    block_number: Number(event.blockNumber),
    block_hash: event.blockHash,
    log_index: event.logIndex,
    transaction_hash: event.transactionHash,
    timestamp: new Date(Number(event.timestamp) * 1000).toISOString(),
    ...(fromState !== undefined && { from_state: fromState, from_state_code: codeOf(fromState) }),
    ...(toState !== undefined && { to_state: toState, to_state_code: codeOf(toState) }),
    ...(flags !== undefined && { flags }),
    ...(actorCommitment !== undefined && { actor_commitment: actorCommitment }),
    ...(fromCommitment !== undefined && { from_commitment: fromCommitment }),
    ...(toCommitment !== undefined && { to_commitment: toCommitment }),
    ...(metadataHash !== undefined && { metadata: metadataHash }),
    ...(tagHash !== undefined && { tag_hash: tagHash }),
  }
}

function codeOf(state: LifecycleState): StateCode {
  return lifecycleStates.indexOf(state) as StateCode
}

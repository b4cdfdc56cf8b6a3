/** What the three tools take and give as Zod schemas (spec §4.3): each output one object with nullable members, never a union at its root. */
import { z } from 'zod'
import {
  chainRefSchema,
  errorBody,
  hash32,
  serviceStatus,
  stateCode,
  stateName,
  tokenIdText,
  version,
} from './verdict.ts'

const tokenIdArgument = z
  .string()
  .regex(/^[0-9]+$/)
  .max(78)
  .meta({
    description: 'Token id as decimal text, 0 to 2^256-1, such as "42". Send text: a JSON number is too small.',
    examples: ['42'],
  })

/** What `get_lifecycle_history` and `check_flagged` take. */
export const tokenInput = z.strictObject({ token_id: tokenIdArgument })

export const verifyAssetInput = z.strictObject({
  token_id: tokenIdArgument,
  include_untrusted: z.boolean().default(true).meta({
    description: 'false leaves out `untrusted`, the unverified text of whoever minted the token.',
  }),
})

export const checkFlaggedSchema = z
  .strictObject({
    version,
    token_id: tokenIdText,
    flagged: z.boolean().meta({ description: 'Reported lost, stolen or under recall investigation.' }),
    state: stateName.meta({ description: 'Lifecycle state.' }),
    state_code: stateCode.meta({ description: 'The state as the number on chain.' }),
    authentic: z.boolean().meta({ description: 'Whether the on-chain state is that of a genuine, unflagged item.' }),
    chainRef: chainRefSchema,
    ...serviceStatus,
  })
  .meta({ id: 'FlagCheck', description: 'Whether one token is flagged, at one block. Holds no free text.' })

/** The closed list of things that can happen to a token. */
const eventTypes = [
  'AssetMinted',
  'TagBound',
  'StateChanged',
  'AssetResold',
  'FlagsChanged',
  'MetadataHashSet',
  'TransferInitiated',
  'TransferCancelled',
] as const

const lifecycleEventSchema = z
  .strictObject({
    type: z.enum(eventTypes).meta({ description: 'What happened.' }),
    block_number: z.int().min(0),
    block_hash: hash32,
    log_index: z.int().min(0).meta({ description: 'Place of the event in its block.' }),
    transaction_hash: hash32,
    timestamp: z.iso.datetime().meta({ description: 'Time of the block, ISO 8601, UTC.' }),
    from_state: stateName.exactOptional(),
    from_state_code: stateCode.exactOptional(),
    to_state: stateName.exactOptional(),
    to_state_code: stateCode.exactOptional(),
    flags: z.int().min(0).max(255).exactOptional().meta({ description: 'The flag byte after the change.' }),
    actor_commitment: hash32
      .exactOptional()
      .meta({ description: 'Commitment to the account whose authority was used.' }),
    from_commitment: hash32.exactOptional().meta({ description: 'Commitment to the owner before.' }),
    to_commitment: hash32.exactOptional().meta({ description: 'Commitment to the owner after.' }),
    metadata: hash32.exactOptional().meta({ description: 'Hash of the product metadata; never its text.' }),
    tag_hash: hash32.exactOptional().meta({ description: 'Commitment to the chip.' }),
  })
  .meta({ id: 'LifecycleEvent', description: 'One event of the contract. An account appears only as a commitment.' })

export const lifecycleHistorySchema = z
  .strictObject({
    version,
    token_id: tokenIdText,
    available: z.boolean().meta({ description: 'false: the history cannot be vouched for, and `reason` says why.' }),
    reason: z.enum(['INDEX_BEHIND', 'INDEX_UNAVAILABLE', 'INDEX_MISMATCH']).exactOptional().meta({
      description:
        'INDEX_BEHIND: the index has not come to the block, ask again; INDEX_UNAVAILABLE: it cannot be read; INDEX_MISMATCH: its events do not lead to the state at the block.',
    }),
    event_count: z.int().min(0).nullable().meta({ description: 'Number of events; null when not available.' }),
    events: z.array(lifecycleEventSchema).nullable().meta({
      description: 'Oldest first, complete up to chainRef.block_number; null, not empty, when not available.',
    }),
    chainRef: chainRefSchema,
    ...serviceStatus,
  })
  .meta({ id: 'LifecycleHistory', description: 'Everything that happened to one token, up to one block.' })

/** What a tool answers instead; the same body as that of the keyless read (spec §2.4). */
export const toolErrorSchema = errorBody([
  'INVALID_TOKEN_ID',
  'INVALID_ARGUMENT',
  'ASSET_NOT_FOUND',
  'CHAIN_UNAVAILABLE',
  'INTERNAL',
]).meta({ id: 'ToolError', description: 'Why a tool gave no result, and what to send instead.' })

export type FlagCheck = z.infer<typeof checkFlaggedSchema>
export type LifecycleEvent = z.infer<typeof lifecycleEventSchema>
export type LifecycleHistory = z.infer<typeof lifecycleHistorySchema>
export type ToolError = z.infer<typeof toolErrorSchema>

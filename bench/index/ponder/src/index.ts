/** Every event of the registry becomes one row; `kind` is the code of service/src/domain/registry-event.ts. */
import { ponder } from 'ponder:registry'
import { event as table } from 'ponder:schema'

const common = ({ log, block, transaction }) => ({
  blockNumber: Number(block.number),
  logIndex: log.logIndex,
  blockHash: block.hash,
  txHash: transaction.hash,
  ts: block.timestamp,
})

ponder.on('Registry:AssetMinted', ({ event, context }) =>
  context.db.insert(table).values({
    ...common(event),
    kind: 1,
    tokenId: event.args.tokenId,
    toAddr: event.args.to,
    data: event.args.metadata,
  }),
)
ponder.on('Registry:TagBound', ({ event, context }) =>
  context.db.insert(table).values({ ...common(event), kind: 2, tokenId: event.args.tokenId, data: event.args.tagHash }),
)
ponder.on('Registry:StateChanged', ({ event, context }) =>
  context.db.insert(table).values({
    ...common(event),
    kind: 3,
    tokenId: event.args.tokenId,
    fromState: event.args.from,
    toState: event.args.to,
    actor: event.args.actor,
  }),
)
ponder.on('Registry:AssetResold', ({ event, context }) =>
  context.db.insert(table).values({
    ...common(event),
    kind: 4,
    tokenId: event.args.tokenId,
    fromAddr: event.args.from,
    toAddr: event.args.to,
  }),
)
ponder.on('Registry:FlagsChanged', ({ event, context }) =>
  context.db.insert(table).values({
    ...common(event),
    kind: 5,
    tokenId: event.args.tokenId,
    flags: event.args.flags,
    actor: event.args.actor,
    data: event.args.reasonHash,
  }),
)
ponder.on('Registry:MetadataHashSet', ({ event, context }) =>
  context.db
    .insert(table)
    .values({ ...common(event), kind: 6, tokenId: event.args.tokenId, data: event.args.metadataHash }),
)
ponder.on('Registry:TransferInitiated', ({ event, context }) =>
  context.db.insert(table).values({
    ...common(event),
    kind: 7,
    tokenId: event.args.tokenId,
    fromAddr: event.args.from,
    toAddr: event.args.to,
    expiry: event.args.expiry,
    nonce: event.args.nonce,
    data: event.args.messageHash,
  }),
)
ponder.on('Registry:TransferCancelled', ({ event, context }) =>
  context.db.insert(table).values({
    ...common(event),
    kind: 8,
    tokenId: event.args.tokenId,
    nonce: event.args.nonce,
    actor: event.args.actor,
  }),
)
ponder.on('Registry:Transfer', ({ event, context }) =>
  context.db.insert(table).values({
    ...common(event),
    kind: 9,
    tokenId: event.args.tokenId,
    fromAddr: event.args.from,
    toAddr: event.args.to,
  }),
)

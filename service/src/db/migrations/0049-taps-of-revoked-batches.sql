-- A tap with the keys of a batch that was revoked since makes no product verified. When its taps were taken back; null or earlier than the
-- status: they are yet to be. The version before takes nothing back. The large index comes first: the table of batches, which every tap
-- reads, is locked only at the end.
create index asset_tap_tag on asset_tap (tag_hash) where tag_hash is not null;
alter table tag_batch add column taps_taken_back_at timestamptz;
create index tag_batch_to_take_back on tag_batch (id)
  where status = 'revoked' and (taps_taken_back_at is null or taps_taken_back_at < status_at);

-- A block of the index has its time. At an earlier block, an offer that had expired since the last event of any product was still pending. Null is
-- not known: a row of a version before.
alter table index_block add column time timestamptz;

-- Payments and transactions by their block: each gateway looks at the blocks of two minutes once a second, and for the payments of a block
-- that a reorganisation has removed. Purchases through a channel have no block, and are most of the rows.
-- An operator may have built them beforehand, without a lock (docs/upgrading.md).
create index if not exists payment_in_block on payment (settled_at) where state = 'done' and block_hash is not null;
create index if not exists payment_of_block on payment (block_hash) where block_hash is not null;
create index if not exists settlement_of_block on settlement (block_hash) where block_hash is not null;

-- Payments that ended, by their transaction.
create index payment_transaction on payment (tx_hash) where settled_at is not null and tx_hash is not null;

-- The seller's view of the payments (spec §4.8), and rows that are kept for accounting.
-- The asset whose proof was bought.
alter table payment add column token_id numeric(78, 0);
update payment set token_id = (proof::json ->> 'assetId')::numeric where proof is not null;
-- The payments of a transaction, of which each bears its part of the gas.
create index payment_of_settlement on payment (settlement) where settlement is not null;
drop index payment_settlement;
-- Few rows among many that are kept for years.
create index payment_dead on payment (settled_at) where state = 'dead';
create index payment_open on payment (claimed_until) where state = 'open';
create index settlement_lost on settlement (sent_at) where state = 'lost';

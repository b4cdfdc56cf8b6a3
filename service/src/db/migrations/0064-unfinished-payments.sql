-- Unfinished payments by payer and request: the next payment of a buyer finds the one that a killed process left.
-- An operator may have built the index beforehand, without a lock (docs/upgrading.md).
create index if not exists payment_unfinished on payment (payer, request_hash) where state = 'settling';
drop index payment_settling;

-- Registered products whose id was the contract's next one, as versions before minted them: a rebuild of the index takes only these from
-- their registrations.
create index operation_counted on operation (idempotency_key) where kind = 'mint' and idempotency_key like 'register:%';

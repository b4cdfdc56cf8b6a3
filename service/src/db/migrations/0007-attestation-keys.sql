-- Every key that ever signed attestations, or was announced to (spec §4.8): public halves only. No row is ever deleted, because what a
-- retired key signed is still shown around, and what a revoked one signed must still be refused.
create table attestation_key (
  address bytea primary key check (octet_length(address) = 20),
  -- Unix seconds, both included.
  valid_from bigint not null check (valid_from >= 0),
  valid_until bigint check (valid_until >= 0),
  status text not null check (status in ('next', 'active', 'retired', 'revoked')),
  constraint attestation_key_ended check ((valid_until is null) = (status in ('next', 'active')))
);

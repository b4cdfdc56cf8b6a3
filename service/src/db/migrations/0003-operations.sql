-- Writes to the chain. A signed transaction is stored before it is sent, so that a crash in between loses nothing and
-- repeats nothing: the same bytes are sent again.
-- The row of a signer is the lock under which its nonces are given out.
create table signer (
  address bytea primary key check (octet_length(address) = 20)
);
create table operation (
  pk bigint generated always as identity primary key,
  idempotency_key text not null unique check (length(idempotency_key) between 1 and 200),
  request_hash bytea not null check (octet_length(request_hash) = 32),
  kind text not null,
  signer bytea not null references signer,
  nonce bigint not null check (nonce >= 0),
  tx_hash bytea not null unique check (octet_length(tx_hash) = 32),
  raw bytea not null,
  status text not null default 'PENDING' check (status in ('PENDING', 'CONFIRMED', 'FAILED')),
  outcome text,
  signed_at timestamptz not null default now(),
  settled_at timestamptz,
  unique (signer, nonce)
);
create index on operation (signer, nonce) where status = 'PENDING';
-- Earlier transactions of an operation, replaced at their nonce by one with higher fees. One of all of them is mined.
create table replaced_transaction (
  tx_hash bytea primary key check (octet_length(tx_hash) = 32),
  operation_pk bigint not null references operation
);
create index on replaced_transaction (operation_pk);

-- Payments of the gateway (spec §4.8): one row per authorization, written before anything is charged.
create table payment (
  pk bigint generated always as identity primary key,
  chain_id bigint not null,
  asset bytea not null check (octet_length(asset) = 20),
  payer bytea not null check (octet_length(payer) = 20),
  nonce bytea not null check (octet_length(nonce) = 32),
  request_hash bytea not null check (octet_length(request_hash) = 32),
  state text not null default 'open' check (state in ('open', 'settling', 'done', 'dead')),
  -- Who is at work on the row, and until when that counts.
  claim uuid,
  claimed_until timestamptz,
  payload text not null check (octet_length(payload) <= 16384),
  valid_before numeric(78, 0) not null,
  proof text,
  from_block bigint,
  tx_hash bytea check (octet_length(tx_hash) = 32),
  reason text,
  answer text,
  created_at timestamptz not null default clock_timestamp(),
  settled_at timestamptz,
  looked_at timestamptz not null default clock_timestamp(),
  unique (chain_id, asset, payer, nonce),
  check (state in ('open', 'dead') or (proof is not null and from_block is not null)),
  check (state <> 'done' or (answer is not null and tx_hash is not null))
);
create index payment_settling on payment (looked_at) where state = 'settling';
create index payment_settled on payment (settled_at) where settled_at is not null;

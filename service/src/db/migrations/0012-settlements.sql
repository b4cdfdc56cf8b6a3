-- Settlement of many payments by one transaction (spec §4.8): each transaction of a facilitator's key is a row, written before it is sent.
create table settlement (
  pk bigint generated always as identity primary key,
  chain_id bigint not null,
  sender bytea not null check (octet_length(sender) = 20),
  nonce bigint not null,
  -- pending: sent, or about to be. mined: in a block. lost: another transaction has its nonce.
  state text not null default 'pending' check (state in ('pending', 'mined', 'lost')),
  -- The process that watches it: number of a session lock.
  holder integer not null,
  -- The newest signed transaction, and the hashes of all with this nonce.
  raw bytea not null,
  hashes bytea[] not null,
  sent_at timestamptz not null default clock_timestamp(),
  gas_used bigint,
  gas_price numeric(78, 0),
  block_number bigint,
  block_hash bytea check (octet_length(block_hash) = 32),
  mined_at timestamptz,
  check (state <> 'mined' or (gas_used is not null and gas_price is not null and block_number is not null))
);
create unique index settlement_pending on settlement (chain_id, sender, nonce) where state = 'pending';
create index settlement_mined on settlement (mined_at) where state = 'mined';

alter table payment
  -- The process that works on the row: number of a session lock. Null: none, or a version that knows `claim` only.
  add column holder integer,
  add column settlement bigint,
  -- In the token's smallest units.
  add column amount numeric(78, 0),
  -- The block of the transfer.
  add column block_number bigint,
  add column block_hash bytea check (octet_length(block_hash) = 32),
  -- The buyer's last answer was that the outcome is unknown.
  add column undelivered boolean not null default false;
create index payment_settlement on payment (settlement) where state = 'settling';
create index payment_undelivered on payment (payer, request_hash) where undelivered;
update payment set amount = (payload::json ->> 'value')::numeric where state = 'done';

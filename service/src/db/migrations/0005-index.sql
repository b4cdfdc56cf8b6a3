-- The index of the chain (spec §2.9, §4.9, §6): what GraphQL lists, and the history of every asset. All of it but `registration`,
-- `transfer_message`, `asset_tap` and `api_key` can be rebuilt from the chain.

create extension if not exists pg_trgm;

-- How far the index is complete, and who may write it: a leader raises `epoch`, so that a paused one can no longer write.
create table index_cursor (
  one boolean primary key default true check (one),
  contract bytea not null check (octet_length(contract) = 20),
  epoch bigint not null default 0,
  number bigint not null check (number >= -1),
  hash bytea not null check (octet_length(hash) = 32),
  block_time timestamptz not null
);

-- Blocks to which a reorganisation can be followed back: all above the finalized one, and the end of every range.
create table index_block (
  number bigint primary key,
  hash bytea not null check (octet_length(hash) = 32)
);

-- Every event of the registry, as the chain has it. `kind` is a code of chain/events.ts; `data` a metadata, tag, message or reason hash.
create table history (
  block_number bigint not null,
  log_index int not null,
  token_id numeric(78, 0) not null,
  kind smallint not null,
  from_state smallint,
  to_state smallint,
  flags smallint,
  from_addr bytea,
  to_addr bytea,
  actor bytea,
  nonce bigint,
  expiry numeric(20, 0),
  data bytea,
  block_hash bytea not null,
  tx_hash bytea not null,
  ts timestamptz not null,
  primary key (block_number, log_index)
);
create index history_token on history (token_id, block_number, log_index);

-- Registrations of products (spec §4.9 registerProduct), off chain: `token_id` is set when the mint is indexed, and taken back with it.
create table registration (
  idempotency_key text primary key check (length(idempotency_key) between 1 and 200),
  request_hash bytea not null check (octet_length(request_hash) = 32),
  tag_id text not null unique check (length(tag_id) between 1 and 200),
  serial text,
  gtin text,
  metadata_hash bytea not null check (octet_length(metadata_hash) = 32),
  token_id numeric(78, 0) unique,
  created_at timestamptz not null default clock_timestamp(),
  unique (gtin, serial),
  -- As in `item`, which takes both over when the mint is indexed: a row that it refused would stop the index.
  constraint registration_serial check (gtin is null or serial is null or
    (serial ~ '^[!"%-?A-Z_a-z]{1,20}$' and serial not in ('.', '..'))),
  constraint registration_gtin check (gtin is null or case when gtin ~ '^[0-9]{14}$' then (
    3 * (substr(gtin, 1, 1)::int + substr(gtin, 3, 1)::int + substr(gtin, 5, 1)::int + substr(gtin, 7, 1)::int
      + substr(gtin, 9, 1)::int + substr(gtin, 11, 1)::int + substr(gtin, 13, 1)::int)
    + substr(gtin, 2, 1)::int + substr(gtin, 4, 1)::int + substr(gtin, 6, 1)::int + substr(gtin, 8, 1)::int
    + substr(gtin, 10, 1)::int + substr(gtin, 12, 1)::int + substr(gtin, 14, 1)::int) % 10 = 0 else false end)
);

-- When the first tap of a bound item was accepted; a rewind leaves it.
create table asset_tap (
  token_id numeric(78, 0) primary key,
  tapped_at timestamptz not null default clock_timestamp()
);

-- One row per token: its newest state, with what the operator knows of it. `tag_id` is the operator's name of the tag, else its commitment.
create table asset (
  pk bigint generated always as identity primary key,
  token_id numeric(78, 0) not null unique
    check (token_id >= 0 and token_id < 115792089237316195423570985008687907853269984665640564039457584007913129639936),
  owner bytea not null check (octet_length(owner) = 20),
  state smallint not null,
  flags smallint not null,
  metadata_hash bytea,
  tag_hash bytea,
  tag_id text,
  name text,
  brand text,
  serial text,
  gtin text,
  tapped_at timestamptz,
  verified boolean not null generated always as
    (state between 1 and 4 and (flags & 31) = 0 and tag_hash is not null and tapped_at is not null) stored,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  updated_block bigint not null
);
create index asset_created on asset (created_at desc, pk desc);
create index asset_updated on asset (updated_at desc, pk desc);
create index asset_brand on asset (brand, created_at desc, pk desc) where brand is not null;
create index asset_verified on asset (created_at desc, pk desc) where verified;
create index asset_brand_unverified on asset (brand, created_at desc, pk desc) where not verified and brand is not null;
create index asset_owner on asset (owner, created_at desc, pk desc);
create index asset_tag_id on asset (tag_id) where tag_id is not null;
create index asset_metadata on asset (metadata_hash) where metadata_hash is not null;
create index asset_name on asset using gin (name gin_trgm_ops);

-- How many products there are, as sums: changes are added as rows of their own, so that no writer waits for another; the indexer adds
-- them up now and then.
create table product_count (
  brand text,
  verified boolean not null,
  n bigint not null
);
create function count_new_products() returns trigger language plpgsql as $$ begin
  insert into product_count select brand, verified, count(*) from new_rows group by 1, 2
  ; return null; end $$;
create function count_old_products() returns trigger language plpgsql as $$ begin
  insert into product_count select brand, verified, -count(*) from old_rows group by 1, 2
  ; return null; end $$;
create function count_changed_products() returns trigger language plpgsql as $$ begin
  insert into product_count select brand, verified, sum(n) from (
    select brand, verified, 1 as n from new_rows union all select brand, verified, -1 from old_rows) changed
  group by 1, 2 having sum(n) <> 0
  ; return null; end $$;
create trigger count_inserted after insert on asset referencing new table as new_rows
  for each statement execute function count_new_products();
create trigger count_deleted after delete on asset referencing old table as old_rows
  for each statement execute function count_old_products();
create trigger count_updated after update on asset referencing old table as old_rows new table as new_rows
  for each statement execute function count_changed_products();

-- Transfers in two steps (spec §3). `id` is <tokenId>-<nonce>, the nonce that the initiation raised; without an initiation
-- <tokenId>-<block>-<logIndex>. Only the indexer writes here.
create table transfer (
  pk bigint generated always as identity primary key,
  id text not null unique,
  asset_pk bigint not null references asset on delete cascade,
  from_addr bytea not null check (octet_length(from_addr) = 20),
  to_addr bytea not null check (octet_length(to_addr) = 20),
  status text not null check (status in ('PENDING', 'CONFIRMED', 'FAILED')),
  initiated_at timestamptz not null,
  initiated_tx bytea not null,
  expires_at timestamptz,
  settled_at timestamptz,
  settled_tx bytea,
  message_hash bytea
);
create index transfer_asset on transfer (asset_pk, initiated_at desc, pk desc);
create index transfer_initiated on transfer (initiated_at desc, pk desc);
create index transfer_status on transfer (status, initiated_at desc, pk desc);
create index transfer_due on transfer (expires_at) where status = 'PENDING';

-- Texts that go with transfers, by keccak256 of their UTF-8 bytes.
create table transfer_message (
  hash bytea primary key check (octet_length(hash) = 32),
  body text not null check (octet_length(body) <= 8000)
);

-- What subscribers hear (spec §6), written in the transaction that causes it. The lock makes the order of `seq` the order of the
-- commits, so that a reader who remembers the last `seq` misses none.
create table outbox (
  seq bigint generated always as identity primary key,
  topic text not null,
  token_id numeric(78, 0) not null,
  payload jsonb not null,
  created_at timestamptz not null default clock_timestamp()
);
create function lock_outbox() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(84532, 2); return null; end $$;
create function announce_outbox() returns trigger language plpgsql as $$ begin perform pg_notify('touchstone_outbox', ''); return null; end $$;
create trigger outbox_in_order before insert on outbox for each statement execute function lock_outbox();
create trigger outbox_announced after insert on outbox for each statement execute function announce_outbox();

-- The first answer to a tap of a bound item (spec §6): true for one call only, and all of it or nothing. Every writer comes to the
-- outbox last: its lock is then held for the commit alone, and nobody who holds it waits for a row.
create function announce_tap(uid bytea, epoch int, counter int, token numeric) returns boolean language plpgsql as $$
declare told timestamptz; begin
  update tap set announced_at = clock_timestamp()
    where tap.uid = $1 and tap.epoch = $2 and tap.counter = $3 and announced_at is null returning announced_at into told
  ; if told is null then return false; end if
  ; insert into asset_tap (token_id, tapped_at) values ($4, told) on conflict do nothing
  ; if not exists (select from asset where token_id = $4) then perform 1 from index_cursor for share -- the step that may bring it
  ; end if
  ; if exists (select from asset where token_id = $4 and tapped_at is null) then
    update asset set tapped_at = told where token_id = $4 and tapped_at is null
  ; end if
  ; insert into outbox (topic, token_id, payload) values ('tap', $4,
    jsonb_build_object('at', to_char(told at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))
  ; return true; end $$;

-- API keys of GraphQL (spec §5): only the SHA-256 of a key is kept.
create table api_key (
  id text primary key check (id ~ '^[a-z0-9]{8}$'),
  hash bytea not null unique check (octet_length(hash) = 32),
  name text not null check (length(name) between 1 and 100),
  scopes text[] not null check (scopes <@ array['read', 'write'] and cardinality(scopes) > 0),
  created_at timestamptz not null default clock_timestamp(),
  last_used_at timestamptz,
  revoked_at timestamptz
);

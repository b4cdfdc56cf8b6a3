-- Taps (spec §4.4): batches without keys, tags, and the ledger that makes every tap count once.

-- What every instance must agree on about a batch; its keys stay in the key file.
create table tag_batch (
  id text primary key check (length(id) between 1 and 64),
  epoch int not null check (epoch >= 0),
  status text not null default 'active' check (status in ('active', 'retired', 'revoked')),
  settings jsonb not null default '{}',
  created_at timestamptz not null default clock_timestamp(),
  status_at timestamptz not null default clock_timestamp()
);

-- One row per life (epoch) of a chip. A tap of an unregistered chip makes the first four columns only.
-- The newest life alone names a token and an item.
create table tag (
  uid bytea not null check (octet_length(uid) = 7),
  epoch int not null default 0 check (epoch >= 0),
  batch_id text not null,
  last_counter int not null default 0 check (last_counter between 0 and 16777215),
  baseline_counter int,
  token_id numeric(78, 0),
  gtin text,
  serial text,
  registered_at timestamptz,
  primary key (uid, epoch)
) with (fillfactor = 80);
create unique index tag_token on tag (token_id) where token_id is not null;
create unique index tag_item on tag (gtin, serial) where gtin is not null;

create table tap (
  uid bytea not null,
  epoch int not null,
  counter int not null,
  picc bytea not null check (octet_length(picc) = 16),
  first_seen timestamptz not null default clock_timestamp(),
  announced_at timestamptz,
  primary key (uid, epoch, counter)
);
-- For pruning; taps arrive in order of time, so this index stays tiny.
create index tap_first_seen on tap using brin (first_seen);

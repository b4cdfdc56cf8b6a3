-- The feed of events (GraphQL `events`): rows of the outbox are kept for EVENT_RETENTION_DAYS and hold everything that a client needs.
-- `kind` is null in rows of earlier versions, which the feed leaves out. `retracts` is the position of the row that a reorganisation took
-- back, and `retracted` marks that row.
alter table outbox
  add column kind text,
  add column happened_at timestamptz,
  add column retracts text,
  add column retracted boolean not null default false;
create index outbox_token on outbox (token_id, seq) where kind is not null;
create index outbox_kind on outbox (kind, seq) where kind is not null;

-- The last row of the outbox that was deleted: a client whose position is before it has missed something. A trigger keeps it, so that a
-- version that deletes after an hour is noticed too.
create table outbox_trim (
  one boolean primary key default true check (one),
  seq bigint not null,
  created_at timestamptz not null
);
insert into outbox_trim (seq, created_at) values (0, to_timestamp(0));
create function note_outbox_trim() returns trigger language plpgsql as $$ begin
  update outbox_trim t set seq = o.seq, created_at = o.created_at
    from (select seq, created_at from old_rows order by seq desc limit 1) o where t.seq < o.seq
  ; return null; end $$;
create trigger outbox_trimmed after delete on outbox referencing old table as old_rows
  for each statement execute function note_outbox_trim();

-- The feed holds every event since `fed_since`, as long as `fed_epoch` is the epoch: a leader that writes no feed raises only the epoch.
alter table index_cursor add column fed_epoch bigint, add column fed_since timestamptz;

-- As in 0005, with the columns of the feed.
create or replace function announce_tap(uid bytea, epoch int, counter int, token numeric) returns boolean language plpgsql as $$
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
  ; insert into outbox (topic, token_id, kind, happened_at, payload) values ('tap', $4, 'VERIFIED', told,
    jsonb_build_object('at', to_char(told at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))
  ; return true; end $$;

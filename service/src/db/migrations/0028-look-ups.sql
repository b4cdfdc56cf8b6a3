-- Tables by the keys of which one shard alone does not know whether they are taken, and sums that the writers of products keep. Triggers
-- keep both for programs from before; a Citus cluster has none of them (db/cluster/distribute.ts).

update transfer t set token_id = a.token_id from asset a where a.pk = t.asset_pk and t.token_id is null;
create index transfer_token on transfer (token_id, initiated_at desc, pk desc);
create unique index transfer_of_token on transfer (token_id, id);

-- The token of an item.
create table token_of_item (
  gtin text not null,
  serial text not null,
  token_id numeric(78, 0) not null,
  primary key (gtin, serial)
);
lock table item in share row exclusive mode;
insert into token_of_item (gtin, serial, token_id) select gtin, serial, token_id from item;
create function keep_token_of_item() returns trigger language plpgsql as $$ begin
  if tg_op <> 'INSERT' then delete from token_of_item k where k.gtin = old.gtin and k.serial = old.serial and k.token_id = old.token_id
  ; end if
  ; if tg_op <> 'DELETE' then
    insert into token_of_item (gtin, serial, token_id) values (new.gtin, new.serial, new.token_id) on conflict do nothing
  ; end if
  ; return null; end $$;
create trigger item_keyed after insert or update or delete on item for each row execute function keep_token_of_item();

-- The tag of a token.
create table tag_of_token (
  token_id numeric(78, 0) primary key,
  uid bytea not null,
  epoch int not null
);
lock table tag in share row exclusive mode;
insert into tag_of_token (token_id, uid, epoch) select token_id, uid, epoch from tag where token_id is not null;
create function keep_tag_of_token() returns trigger language plpgsql as $$ begin
  if tg_op = 'UPDATE' and old.token_id is distinct from new.token_id then
    delete from tag_of_token t where t.token_id = old.token_id and t.uid = old.uid and t.epoch = old.epoch
  ; end if
  ; if new.token_id is not null then
    insert into tag_of_token (token_id, uid, epoch) values (new.token_id, new.uid, new.epoch)
      on conflict (token_id) do update set epoch = excluded.epoch where tag_of_token.uid = excluded.uid
  ; end if
  ; return null; end $$;
create trigger tag_of_token_made after insert on tag for each row when (new.token_id is not null)
  execute function keep_tag_of_token();
create trigger tag_of_token_changed after update of token_id on tag for each row execute function keep_tag_of_token();

-- Registers an item for good. Raises unique_violation of `item_key` when another token is the item. Returns false when the token is
-- registered already, as this item or as another. With `replaces` the token becomes this item.
create function register_item(token numeric, gtin text, serial text, replaces boolean) returns boolean language plpgsql as $$
#variable_conflict use_column
declare owner numeric; was record; begin
  insert into token_of_item as k (gtin, serial, token_id) values ($2, $3, $1)
    on conflict (gtin, serial) do update set token_id = k.token_id returning k.token_id into owner
  ; if owner <> $1 then
    raise unique_violation using constraint = 'item_key', message = 'another token is this item'
  ; end if
  ; select i.gtin, i.serial into was from item i where i.token_id = $1
  ; if not found then
    insert into item (token_id, gtin, serial) values ($1, $2, $3) on conflict do nothing
    ; if found then return true; end if
    ; select i.gtin, i.serial into was from item i where i.token_id = $1
  ; end if
  ; if was.gtin = $2 and was.serial = $3 then return false; end if
  ; if $4 then
    update item i set gtin = $2, serial = $3 where i.token_id = $1
    ; delete from token_of_item k where k.gtin = was.gtin and k.serial = was.serial
  ; else
    delete from token_of_item k where k.gtin = $2 and k.serial = $3
  ; end if
  ; return false; end $$;

-- Registers a tag of an epoch. The former epochs end: their counter is used up and their token is free for the new one. `created` is null
-- when the same epoch is registered under another batch. Raises unique_violation of `tag_token` when another tag has the token.
create function import_tag(uid bytea, epoch int, batch text, counter int, token numeric, gtin text, serial text,
  out newer boolean, out created boolean) language plpgsql as $$
#variable_conflict use_column
declare moment timestamptz := clock_timestamp(); former record; had numeric; begin
  select count(*) filter (where t.epoch > $2) > 0,
      case when count(*) filter (where t.epoch = $2 and t.batch_id <> $3) = 0 then count(*) filter (where t.epoch = $2) = 0 end,
      max(t.token_id) filter (where t.epoch = $2)
    into newer, created, had from tag t where t.uid = $1
  ; if newer or created is null then return; end if
  ; for former in select t.token_id from tag t where t.uid = $1 and t.epoch < $2 and t.token_id is not null loop
    delete from tag_of_token o where o.token_id = former.token_id and o.uid = $1
  ; end loop
  ; update tag t set last_counter = 16777215, token_id = null where t.uid = $1 and t.epoch < $2
  ; if $5 is not null then
    if had <> $5 then delete from tag_of_token o where o.token_id = had and o.uid = $1
    ; end if
    ; insert into tag_of_token as o (token_id, uid, epoch) values ($5, $1, $2)
      on conflict (token_id) do update set epoch = excluded.epoch where o.uid = excluded.uid
    ; if not found then
      raise unique_violation using constraint = 'tag_token', message = 'another tag has this token'
    ; end if
  ; end if
  ; insert into tag as t (uid, epoch, batch_id, last_counter, baseline_counter, token_id, registered_at)
    values ($1, $2, $3, $4, $4, $5, moment)
    on conflict on constraint tag_pkey do update set
      last_counter = greatest(t.last_counter, excluded.last_counter),
      baseline_counter = coalesce(t.baseline_counter, excluded.baseline_counter),
      token_id = coalesce(excluded.token_id, t.token_id),
      registered_at = coalesce(t.registered_at, excluded.registered_at)
    where t.batch_id = excluded.batch_id
  ; if not found then created := null; return; end if
  ; if $6 is not null then perform register_item($5, $6, $7, true); end if
  ; end $$;

-- Presents taps one after another, each with the row that judges it; the function runs on the shard of the first tag.
create function present_taps(shard bytea, uids bytea[], epochs int[], counters int[], piccs bytea[], batches text[], times text[],
  consumes boolean[], out place int, out last_counter int, out picc bytea, out age float8, out status text, out newer boolean,
  out fresh boolean) returns setof record language plpgsql as $$
#variable_conflict use_column
declare moment timestamptz; seen timestamptz; begin
  for n in 1 .. cardinality(uids) loop
    place := n
    ; moment := coalesce(times[n]::timestamptz, clock_timestamp())
    ; fresh := false; status := null; picc := null; seen := null
    ; select max(t.last_counter) filter (where t.epoch = epochs[n]), coalesce(bool_or(t.epoch > epochs[n]), false)
      into last_counter, newer from tag t where t.uid = uids[n]
    ; select p.picc, p.first_seen into picc, seen from tap p
      where p.uid = uids[n] and p.epoch = epochs[n] and p.counter = counters[n]
    ; select b.status into status from tag_batch b where b.id = batches[n]
    ; age := extract(epoch from moment - seen)
    ; if consumes[n] and picc is null and status is distinct from 'revoked' and not newer
      and counters[n] > coalesce(last_counter, 0) then
      insert into tag as t (uid, epoch, batch_id, last_counter) values (uids[n], epochs[n], batches[n], counters[n])
        on conflict on constraint tag_pkey do update set last_counter = excluded.last_counter
        where t.last_counter < excluded.last_counter
      ; fresh := found
      ; if fresh then
        insert into tap (uid, epoch, counter, picc, first_seen)
          values (uids[n], epochs[n], counters[n], piccs[n], moment)
      ; end if
    ; end if
    ; return next
  ; end loop
  ; end $$;

-- A transaction whose statements add the sums themselves says so; the triggers count for all others.
create function sums_are_kept() returns boolean language sql stable as $$
  select coalesce(current_setting('touchstone.sums', true), '') = 'kept' $$;
create or replace function count_new_products() returns trigger language plpgsql as $$ begin
  if sums_are_kept() then return null; end if
  ; insert into product_count select brand, verified, count(*) from new_rows group by 1, 2
  ; insert into product_total select verified, count(*) from new_rows group by 1
  ; return null; end $$;
create or replace function count_old_products() returns trigger language plpgsql as $$ begin
  if sums_are_kept() then return null; end if
  ; insert into product_count select brand, verified, -count(*) from old_rows group by 1, 2
  ; insert into product_total select verified, -count(*) from old_rows group by 1
  ; return null; end $$;
create or replace function count_changed_products() returns trigger language plpgsql as $$ begin
  if sums_are_kept() then return null; end if
  ; insert into product_count select brand, verified, sum(n) from (
    select brand, verified, 1 as n from new_rows union all select brand, verified, -1 from old_rows) changed
  group by 1, 2 having sum(n) <> 0
  ; insert into product_total select verified, sum(n) from (
    select verified, 1 as n from new_rows union all select verified, -1 from old_rows) changed
  group by 1 having sum(n) <> 0
  ; return null; end $$;
create or replace function group_new_products() returns trigger language plpgsql as $$ begin
  if sums_are_kept() then return null; end if
  ; insert into product_group select g.dimension, g.key, count(*) from new_rows, groups_of(state, flags, created_at) g group by 1, 2
  ; return null; end $$;
create or replace function group_old_products() returns trigger language plpgsql as $$ begin
  if sums_are_kept() then return null; end if
  ; insert into product_group select g.dimension, g.key, -count(*) from old_rows, groups_of(state, flags, created_at) g group by 1, 2
  ; return null; end $$;
create or replace function group_changed_products() returns trigger language plpgsql as $$ begin
  if sums_are_kept() then return null; end if
  ; insert into product_group select g.dimension, g.key, sum(n) from (
    select state, flags, created_at, 1 as n from new_rows union all select state, flags, created_at, -1 from old_rows) changed,
    groups_of(state, flags, created_at) g
  group by 1, 2 having sum(n) <> 0
  ; return null; end $$;
create or replace function add_product_names() returns trigger language plpgsql as $$ begin
  if sums_are_kept() then return null; end if
  ; insert into product_name select distinct n.name from new_rows n
    where n.name is not null and not exists (select from product_name p where p.name = n.name)
    order by n.name on conflict do nothing
  ; return null; end $$;

-- As in 0018; the moment is a variable, and the sums are kept here.
create or replace function announce_tap(uid bytea, epoch int, counter int, token numeric) returns boolean language plpgsql as $$
declare told timestamptz := clock_timestamp(); tapped record; begin
  update tap set announced_at = told where tap.uid = $1 and tap.epoch = $2 and tap.counter = $3 and announced_at is null
  ; if not found then return false; end if
  ; insert into asset_tap (token_id, tapped_at) values ($4, told) on conflict do nothing
  ; if not exists (select from asset where token_id = $4) then perform 1 from index_cursor for share -- the step that may bring it
  ; end if
  ; if exists (select from asset where token_id = $4 and tapped_at is null) then
    perform set_config('touchstone.sums', 'kept', true)
    ; update asset set tapped_at = told where token_id = $4 and tapped_at is null returning asset.brand, asset.verified into tapped
    ; if tapped.verified then
      insert into product_count (brand, verified, n) values (tapped.brand, false, -1), (tapped.brand, true, 1)
      ; insert into product_total (verified, n) values (false, -1), (true, 1)
    ; end if
  ; end if
  ; insert into outbox (topic, token_id, kind, happened_at, payload) values ('tap', $4, 'VERIFIED', told,
    jsonb_build_object('at', to_char(told at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))
  ; return true; end $$;

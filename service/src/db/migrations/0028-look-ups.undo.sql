-- Nothing is lost: the look-up tables follow from items and tags, and triggers count the products again.
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
create or replace function count_new_products() returns trigger language plpgsql as $$ begin
  insert into product_count select brand, verified, count(*) from new_rows group by 1, 2
  ; insert into product_total select verified, count(*) from new_rows group by 1
  ; return null; end $$;
create or replace function count_old_products() returns trigger language plpgsql as $$ begin
  insert into product_count select brand, verified, -count(*) from old_rows group by 1, 2
  ; insert into product_total select verified, -count(*) from old_rows group by 1
  ; return null; end $$;
create or replace function count_changed_products() returns trigger language plpgsql as $$ begin
  insert into product_count select brand, verified, sum(n) from (
    select brand, verified, 1 as n from new_rows union all select brand, verified, -1 from old_rows) changed
  group by 1, 2 having sum(n) <> 0
  ; insert into product_total select verified, sum(n) from (
    select verified, 1 as n from new_rows union all select verified, -1 from old_rows) changed
  group by 1 having sum(n) <> 0
  ; return null; end $$;
create or replace function group_new_products() returns trigger language plpgsql as $$ begin
  insert into product_group select g.dimension, g.key, count(*) from new_rows, groups_of(state, flags, created_at) g group by 1, 2
  ; return null; end $$;
create or replace function group_old_products() returns trigger language plpgsql as $$ begin
  insert into product_group select g.dimension, g.key, -count(*) from old_rows, groups_of(state, flags, created_at) g group by 1, 2
  ; return null; end $$;
create or replace function group_changed_products() returns trigger language plpgsql as $$ begin
  insert into product_group select g.dimension, g.key, sum(n) from (
    select state, flags, created_at, 1 as n from new_rows union all select state, flags, created_at, -1 from old_rows) changed,
    groups_of(state, flags, created_at) g
  group by 1, 2 having sum(n) <> 0
  ; return null; end $$;
create or replace function add_product_names() returns trigger language plpgsql as $$ begin
  insert into product_name select distinct n.name from new_rows n
    where n.name is not null and not exists (select from product_name p where p.name = n.name)
    order by n.name on conflict do nothing
  ; return null; end $$;
drop function sums_are_kept;
drop function present_taps;
drop function import_tag;
drop function register_item;
drop trigger tag_of_token_changed on tag;
drop trigger tag_of_token_made on tag;
drop function keep_tag_of_token;
drop table tag_of_token;
drop trigger item_keyed on item;
drop function keep_token_of_item;
drop table token_of_item;
drop index transfer_token, transfer_of_token;

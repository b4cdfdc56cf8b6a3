-- Taps count for the tag that the index has again. Nothing is lost: the functions hold no data.
drop function accept_taps(bytea[], int[], int[], bytea[], text[], text[], boolean[], numeric[], bytea[]);
drop function announce_taps(bytea[], int[], int[], numeric[], bytea[]);
drop function announce_tap(bytea, int, int, numeric, bytea);
create or replace function publish_taps(tokens numeric[], moment timestamptz) returns void language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare one record; tapped record; untapped numeric[]
  ; content jsonb := jsonb_build_object('at', to_char(moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')); begin
  with made as (insert into asset_tap (token_id, tapped_at)
    select distinct token, moment from unnest(tokens) token order by token on conflict do nothing)
  select array_agg(token) into untapped from unnest(tokens) token
    left join lateral (select a.tapped_at from asset a where a.token_id = token limit 1) a on true where tapped_at is null
  ; if untapped is not null then
    perform 1 from index_cursor for share -- a step that may bring the products, or change them
    ; for one in select distinct a.token_id from unnest(untapped) as g (token) cross join lateral
      (select a.token_id from asset a where a.token_id = g.token and a.tapped_at is null limit 1) a order by a.token_id loop
      perform set_config('touchstone.sums', 'kept', true)
      ; update asset a set tapped_at = moment where a.token_id = one.token_id and a.tapped_at is null returning a.brand, a.verified into tapped
      ; if tapped.verified then
        insert into product_count (brand, verified, n) values (tapped.brand, false, -1), (tapped.brand, true, 1)
        ; insert into product_total (verified, n) values (false, -1), (true, 1)
      ; end if
    ; end loop
  ; end if
  ; insert into outbox (topic, token_id, kind, happened_at, payload)
    select 'tap', token, 'VERIFIED', moment, content from unnest(tokens) token
  ; end $$;

create or replace function announce_tap(uid bytea, epoch int, counter int, token numeric) returns boolean language plpgsql as $$
declare told timestamptz := clock_timestamp(); tapped record; last bigint; begin
  update tap set announced_at = told where tap.uid = $1 and tap.epoch = $2 and tap.counter = $3 and announced_at is null
  ; if not found then return false; end if
  ; insert into asset_tap (token_id, tapped_at) values ($4, told) on conflict do nothing
  ; if not exists (select from asset where token_id = $4 and tapped_at is not null) then
    select c.step into last from index_cursor c for share
    ; while last > 0 and not exists (select from index_shown s where s.step = last) loop perform pg_sleep(0.005); end loop
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

drop function publish_taps(numeric[], bytea[], timestamptz);

-- Nothing is lost: readers of a cluster may see half a step again, and the function waits as it did in 0030.
drop table index_shown;
alter table index_cursor drop column step;
create or replace function announce_tap(uid bytea, epoch int, counter int, token numeric) returns boolean language plpgsql as $$
declare told timestamptz := clock_timestamp(); tapped record; begin
  update tap set announced_at = told where tap.uid = $1 and tap.epoch = $2 and tap.counter = $3 and announced_at is null
  ; if not found then return false; end if
  ; insert into asset_tap (token_id, tapped_at) values ($4, told) on conflict do nothing
  ; if not exists (select from asset where token_id = $4 and tapped_at is not null) then perform 1 from index_cursor for share
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

-- Taps are published by the statements of before. Nothing is lost: the function holds no data.
create or replace function publish_taps(tokens numeric[], moment timestamptz) returns void language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare one record; tapped record; untapped numeric[]; begin
  insert into asset_tap (token_id, tapped_at)
    select distinct token, moment from unnest(tokens) token order by token on conflict do nothing
  ; select array_agg(distinct token) into untapped from unnest(tokens) token
    left join lateral (select a.tapped_at from asset a where a.token_id = token limit 1) a on true where tapped_at is null
  ; if untapped is not null then
    perform 1 from index_cursor for share -- a step that may bring the products, or change them
    ; perform set_config('touchstone.sums', 'kept', true)
    ; for one in select a.token_id from unnest(untapped) as g (token) cross join lateral
      (select a.token_id from asset a where a.token_id = g.token and a.tapped_at is null limit 1) a order by a.token_id loop
      update asset a set tapped_at = moment where a.token_id = one.token_id and a.tapped_at is null returning a.brand, a.verified into tapped
      ; if tapped.verified then
        insert into product_count (brand, verified, n) values (tapped.brand, false, -1), (tapped.brand, true, 1)
        ; insert into product_total (verified, n) values (false, -1), (true, 1)
      ; end if
    ; end loop
  ; end if
  ; insert into outbox (topic, token_id, kind, happened_at, payload)
    select 'tap', token, 'VERIFIED', moment, jsonb_build_object('at', to_char(moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
    from unnest(tokens) token
  ; end $$;

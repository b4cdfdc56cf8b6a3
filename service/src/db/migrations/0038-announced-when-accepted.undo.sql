-- Nothing is lost: the functions hold no data.
drop function accept_taps(bytea[], int[], int[], bytea[], text[], text[], boolean[], numeric[]);
create or replace function accept_taps(uids bytea[], epochs int[], counters int[], piccs bytea[], batches text[], times text[], consumes boolean[],
  out last_counter int, out picc bytea, out age float8, out status text, out newer boolean, out fresh boolean)
  returns setof record language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
begin return query with k as materialized (
  select g.*, coalesce(g.time::timestamptz, clock_timestamp()) as at, t.last_counter, p.picc as known, p.first_seen,
    case when b.status is distinct from 'revoked' and case when t.registered_at is not null then t.batch_id <> g.batch_id
      else exists (select from tag x where x.uid = g.uid and x.epoch < g.epoch and x.registered_at is not null) end
      then 'elsewhere' else b.status end as status,
    exists (select from tag x where x.uid = g.uid and x.epoch > g.epoch) as newer
  from unnest(uids, epochs, counters, piccs, batches, times, consumes) with ordinality
    as g (uid, epoch, counter, picc, batch_id, time, consume, n)
  left join lateral (select t.last_counter, t.batch_id, t.registered_at from tag t
    where t.uid = g.uid and t.epoch = g.epoch limit 1) t on true
  left join lateral (select p.picc, p.first_seen from tap p
    where p.uid = g.uid and p.epoch = g.epoch and p.counter = g.counter limit 1) p on true
  left join lateral (select b.status from tag_batch b where b.id = g.batch_id limit 1) b on true),
unused as materialized (
  select distinct on (uid, epoch) * from k
  where consume and known is null and coalesce(status, '') not in ('revoked', 'elsewhere') and not newer and counter > coalesce(last_counter, 0)
  order by uid, epoch, counter, n),
adv as (
  insert into tag as t (uid, epoch, batch_id, last_counter) select uid, epoch, batch_id, counter from unused
  on conflict (uid, epoch) do update set last_counter = excluded.last_counter
  where t.last_counter < excluded.last_counter returning uid, epoch),
won as materialized (select * from unused where (uid, epoch) in (select uid, epoch from adv)),
made as (insert into tap (uid, epoch, counter, picc, first_seen) select uid, epoch, counter, picc, at from won)
select k.last_counter, k.known, extract(epoch from k.at - k.first_seen)::float8, k.status, k.newer, k.n in (select n from won)
from k order by k.n
  ; end $$;

create or replace function announce_taps(uids bytea[], epochs int[], counters int[], tokens numeric[]) returns boolean[] language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare moment timestamptz := clock_timestamp(); one record; tapped record; untapped numeric[]
  ; firsts boolean[] := array_fill(false, array[cardinality(uids)]); begin
  for one in select * from unnest(uids, epochs, counters) with ordinality as g (uid, epoch, counter, n) order by uid, epoch, counter loop
    update tap t set announced_at = moment
      where t.uid = one.uid and t.epoch = one.epoch and t.counter = one.counter and t.announced_at is null
    ; firsts[one.n] := found
  ; end loop
  ; insert into asset_tap (token_id, tapped_at)
    select distinct token, moment from unnest(tokens, firsts) as g (token, first) where first order by token on conflict do nothing
  ; select array_agg(distinct token) into untapped from unnest(tokens, firsts) as g (token, first)
    left join lateral (select a.tapped_at from asset a where a.token_id = g.token limit 1) a on true where first and tapped_at is null
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
    from unnest(tokens, firsts) as g (token, first) where first
  ; return firsts; end $$;

drop function publish_taps;

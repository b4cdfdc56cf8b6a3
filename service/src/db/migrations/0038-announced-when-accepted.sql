-- A tap whose product is known is announced by the commit that accepts it, so that it needs one commit and one version of its row. The
-- version before calls the function of seven parameters and `announce_taps`, which remain: a tap whose product is known later uses it too.

-- Writes what follows from the first announcement of taps of these products, one for each tap. The outbox comes last, because its lock is
-- held until the commit.
create function publish_taps(tokens numeric[], moment timestamptz) returns void language plpgsql
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

-- `tokens` are the products, null where a tap is not announced by this call. `announced` is true for a tap that was announced, now or before.
create function accept_taps(uids bytea[], epochs int[], counters int[], piccs bytea[], batches text[], times text[], consumes boolean[],
  tokens numeric[], out last_counter int, out picc bytea, out age float8, out status text, out newer boolean, out fresh boolean,
  out announced boolean)
  returns setof record language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare moment timestamptz := clock_timestamp(); published numeric[]; product numeric; begin
  for last_counter, picc, age, status, newer, fresh, announced, product in with k as materialized (
    select g.*, coalesce(g.time::timestamptz, clock_timestamp()) as at, t.last_counter, p.picc as known, p.first_seen, p.announced_at,
      case when b.status is distinct from 'revoked' and case when t.registered_at is not null then t.batch_id <> g.batch_id
        else exists (select from tag x where x.uid = g.uid and x.epoch < g.epoch and x.registered_at is not null) end
        then 'elsewhere' else b.status end as status,
      exists (select from tag x where x.uid = g.uid and x.epoch > g.epoch) as newer
    from unnest(uids, epochs, counters, piccs, batches, times, consumes, tokens) with ordinality
      as g (uid, epoch, counter, picc, batch_id, time, consume, token, n)
    left join lateral (select t.last_counter, t.batch_id, t.registered_at from tag t
      where t.uid = g.uid and t.epoch = g.epoch limit 1) t on true
    left join lateral (select p.picc, p.first_seen, p.announced_at from tap p
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
  made as (
    insert into tap (uid, epoch, counter, picc, first_seen, announced_at)
    select uid, epoch, counter, picc, at, case when token is not null then moment end from won)
  select k.last_counter, k.known, extract(epoch from k.at - k.first_seen)::float8, k.status, k.newer, won.n is not null,
    k.announced_at is not null or won.token is not null, won.token
  from k left join won on won.n = k.n order by k.n loop
    if product is not null then published := published || product; end if
    ; return next
  ; end loop
  ; if published is not null then perform publish_taps(published, moment); end if
  ; end $$;

create or replace function accept_taps(uids bytea[], epochs int[], counters int[], piccs bytea[], batches text[], times text[], consumes boolean[],
  out last_counter int, out picc bytea, out age float8, out status text, out newer boolean, out fresh boolean)
  returns setof record language sql as $$
  select last_counter, picc, age, status, newer, fresh from accept_taps(uids, epochs, counters, piccs, batches, times, consumes, '{}')
$$;

create or replace function announce_taps(uids bytea[], epochs int[], counters int[], tokens numeric[]) returns boolean[] language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare moment timestamptz := clock_timestamp(); one record; published numeric[]
  ; firsts boolean[] := array_fill(false, array[cardinality(uids)]); begin
  for one in select * from unnest(uids, epochs, counters) with ordinality as g (uid, epoch, counter, n) order by uid, epoch, counter loop
    update tap t set announced_at = moment
      where t.uid = one.uid and t.epoch = one.epoch and t.counter = one.counter and t.announced_at is null
    ; firsts[one.n] := found
    ; if firsts[one.n] then published := published || tokens[one.n]; end if
  ; end loop
  ; if published is not null then perform publish_taps(published, moment); end if
  ; return firsts; end $$;

-- A tap counts for the tag that was tapped, whose commitment comes with it. The index may have another tag of the product, because it is
-- behind the chain or on another branch. `asset_tap` has the tag that was tapped last, and the time of the first of its taps. A row without
-- a tag counts for the one that is bound. Functions without tags remain for the version before.

-- Publishes taps as before. It writes nothing but the event where the product was tapped with the same tag before, and the index has it so.
-- Otherwise it locks the index before the tag is kept, as a step of the index does.
create function publish_taps(tokens numeric[], tags bytea[], moment timestamptz) returns void language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare one record; tapped record; others numeric[]; other_tags bytea[]
  ; content jsonb := jsonb_build_object('at', to_char(moment at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')); begin
  select array_agg(g.token), array_agg(g.tag) into others, other_tags from unnest(tokens, tags) as g (token, tag)
    left join lateral (select a.tag_hash from asset a where a.token_id = g.token and a.tapped_at is not null limit 1) a on true
    left join lateral (select t.tag_hash from asset_tap t where t.token_id = g.token limit 1) t on true
    where (a.tag_hash = g.tag and t.tag_hash = g.tag) is not true
  ; if others is not null then
    perform 1 from index_cursor for share -- a step that may bring the products, or change them
    ; insert into asset_tap as t (token_id, tapped_at, tag_hash)
      select distinct on (g.token) g.token, moment, g.tag from unnest(others, other_tags) with ordinality as g (token, tag, n)
      order by g.token, g.n desc
      on conflict (token_id) do update set tapped_at = excluded.tapped_at, tag_hash = excluded.tag_hash
      where t.tag_hash is distinct from coalesce(excluded.tag_hash, t.tag_hash)
    ; for one in select distinct a.token_id from unnest(others, other_tags) as g (token, tag) cross join lateral
      (select a.token_id from asset a where a.token_id = g.token and a.tapped_at is null and a.tag_hash = coalesce(g.tag, a.tag_hash) limit 1) a
      order by a.token_id loop
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

-- The version before accepts and announces its taps by this one. Their tag is the one that the index has.
create or replace function publish_taps(tokens numeric[], moment timestamptz) returns void language sql as $$
  select publish_taps(tokens, array(
    select (select a.tag_hash from asset a where a.token_id = g.token) from unnest(tokens) with ordinality as g (token, n) order by g.n), moment)
$$;

-- As before; `tags` are the commitments by which the chain has the products.
create function accept_taps(uids bytea[], epochs int[], counters int[], piccs bytea[], batches text[], times text[], consumes boolean[],
  tokens numeric[], tags bytea[], out last_counter int, out picc bytea, out age float8, out status text, out newer boolean, out fresh boolean,
  out announced boolean)
  returns setof record language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare moment timestamptz := clock_timestamp(); published numeric[]; product numeric
  ; published_tags bytea[]; product_tag bytea; begin
  for last_counter, picc, age, status, newer, fresh, announced, product, product_tag in with k as materialized (
    select g.*, coalesce(g.time::timestamptz, clock_timestamp()) as at, t.last_counter, p.picc as known, p.first_seen, p.announced_at,
      case when b.status is distinct from 'revoked' and own.batch_id <> g.batch_id then 'elsewhere' else b.status end as status,
      exists (select from tag x where x.uid = g.uid and x.epoch > g.epoch
        and (x.registered_at is not null or coalesce((select o.status from tag_batch o where o.id = x.batch_id), '') <> 'revoked')) as newer
    from unnest(uids, epochs, counters, piccs, batches, times, consumes, tokens, tags) with ordinality
      as g (uid, epoch, counter, picc, batch_id, time, consume, token, product_tag, n)
    left join lateral (select t.last_counter from tag t where t.uid = g.uid and t.epoch = g.epoch limit 1) t on true
    left join lateral (select x.batch_id from tag x where x.uid = g.uid and x.epoch <= g.epoch
        and (x.registered_at is not null or coalesce((select o.status from tag_batch o where o.id = x.batch_id), '') <> 'revoked')
      order by x.registered_at is null, x.epoch desc limit 1) own on true
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
    k.announced_at is not null or won.token is not null, won.token, won.product_tag
  from k left join won on won.n = k.n order by k.n loop
    if product is not null then published := published || product; published_tags := published_tags || product_tag; end if
    ; return next
  ; end loop
  ; if published is not null then perform publish_taps(published, published_tags, moment); end if
  ; end $$;

create function announce_taps(uids bytea[], epochs int[], counters int[], tokens numeric[], tags bytea[]) returns boolean[] language plpgsql
  set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare moment timestamptz := clock_timestamp(); one record; published numeric[]; published_tags bytea[]
  ; firsts boolean[] := array_fill(false, array[cardinality(uids)]); begin
  for one in select * from unnest(uids, epochs, counters) with ordinality as g (uid, epoch, counter, n) order by uid, epoch, counter loop
    update tap t set announced_at = moment
      where t.uid = one.uid and t.epoch = one.epoch and t.counter = one.counter and t.announced_at is null
    ; firsts[one.n] := found
    ; if firsts[one.n] then published := published || tokens[one.n]; published_tags := published_tags || tags[one.n]; end if
  ; end loop
  ; if published is not null then perform publish_taps(published, published_tags, moment); end if
  ; return firsts; end $$;

-- Announces a tap on a cluster, as `announce_taps` does elsewhere.
create function announce_tap(uid bytea, epoch int, counter int, token numeric, tag bytea) returns boolean language plpgsql as $$
declare told timestamptz := clock_timestamp(); is_known boolean; tapped record; last bigint; begin
  update tap set announced_at = told where tap.uid = $1 and tap.epoch = $2 and tap.counter = $3 and announced_at is null
  ; if not found then return false; end if
  ; select true into is_known from asset a join asset_tap t on t.token_id = a.token_id
    where a.token_id = $4 and t.token_id = $4 and a.tapped_at is not null and a.tag_hash = $5 and t.tag_hash = $5
  ; if is_known is null then
    select c.step into last from index_cursor c for share
    ; while last > 0 and not exists (select from index_shown s where s.step = last) loop perform pg_sleep(0.005); end loop
    ; insert into asset_tap as t (token_id, tapped_at, tag_hash) values ($4, told, $5)
      on conflict (token_id) do update set tapped_at = excluded.tapped_at, tag_hash = excluded.tag_hash
      where t.tag_hash is distinct from coalesce(excluded.tag_hash, t.tag_hash)
    ; if exists (select from asset a where a.token_id = $4 and a.tapped_at is null and a.tag_hash = coalesce($5, a.tag_hash)) then
      perform set_config('touchstone.sums', 'kept', true)
      ; update asset set tapped_at = told where token_id = $4 and tapped_at is null returning asset.brand, asset.verified into tapped
      ; if tapped.verified then
        insert into product_count (brand, verified, n) values (tapped.brand, false, -1), (tapped.brand, true, 1)
        ; insert into product_total (verified, n) values (false, -1), (true, 1)
      ; end if
    ; end if
  ; end if
  ; insert into outbox (topic, token_id, kind, happened_at, payload) values ('tap', $4, 'VERIFIED', told,
    jsonb_build_object('at', to_char(told at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))
  ; return true; end $$;

create or replace function announce_tap(uid bytea, epoch int, counter int, token numeric) returns boolean language plpgsql as $$
declare bound bytea; begin
  select a.tag_hash into bound from asset a where a.token_id = $4
  ; return announce_tap($1, $2, $3, $4, bound); end $$;

-- Products whose present tag was tapped after the one that was kept. On a cluster no function can be created behind this statement.
update asset_tap t set tag_hash = a.tag_hash, tapped_at = a.tapped_at from asset a
where a.token_id = t.token_id and t.tag_hash <> a.tag_hash and a.tapped_at is not null;

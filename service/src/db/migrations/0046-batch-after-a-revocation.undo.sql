-- A tapped row of a revoked batch keeps that batch again. Nothing is lost: the functions hold no data.
create or replace function accept_taps(uids bytea[], epochs int[], counters int[], piccs bytea[], batches text[], times text[], consumes boolean[],
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

create or replace function present_taps(shard bytea, uids bytea[], epochs int[], counters int[], piccs bytea[], batches text[], times text[],
  consumes boolean[], out place int, out last_counter int, out picc bytea, out age float8, out status text, out newer boolean,
  out fresh boolean) returns setof record language plpgsql as $$
#variable_conflict use_column
declare moment timestamptz; seen timestamptz; own text; is_elsewhere boolean; begin
  for n in 1 .. cardinality(uids) loop
    place := n
    ; moment := coalesce(times[n]::timestamptz, clock_timestamp())
    ; fresh := false; status := null; picc := null; seen := null
    ; select max(t.last_counter) filter (where t.epoch = epochs[n]), coalesce(bool_or(t.epoch > epochs[n] and (t.registered_at is not null
          or coalesce((select o.status from tag_batch o where o.id = t.batch_id), '') <> 'revoked')), false)
      into last_counter, newer from tag t where t.uid = uids[n]
    ; own := null
    ; select x.batch_id into own from tag x where x.uid = uids[n] and x.epoch <= epochs[n]
        and (x.registered_at is not null or coalesce((select o.status from tag_batch o where o.id = x.batch_id), '') <> 'revoked')
      order by x.registered_at is null, x.epoch desc limit 1
    ; is_elsewhere := coalesce(own <> batches[n], false)
    ; select p.picc, p.first_seen into picc, seen from tap p
      where p.uid = uids[n] and p.epoch = epochs[n] and p.counter = counters[n]
    ; select b.status into status from tag_batch b where b.id = batches[n]
    ; if is_elsewhere and status is distinct from 'revoked' then status := 'elsewhere'; end if
    ; age := extract(epoch from moment - seen)
    ; if consumes[n] and picc is null and status is distinct from 'revoked' and not is_elsewhere and not newer
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

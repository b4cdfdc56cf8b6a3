-- Nothing is lost: the functions hold no data.
create or replace function accept_taps(uids bytea[], epochs int[], counters int[], piccs bytea[], batches text[], times text[], consumes boolean[],
  out last_counter int, out picc bytea, out age float8, out status text, out newer boolean, out fresh boolean)
  returns setof record language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
begin return query with k as materialized (
  select g.*, coalesce(g.time::timestamptz, clock_timestamp()) as at, t.last_counter, p.picc as known, p.first_seen, b.status,
    exists (select from tag x where x.uid = g.uid and x.epoch > g.epoch) as newer
  from unnest(uids, epochs, counters, piccs, batches, times, consumes) with ordinality
    as g (uid, epoch, counter, picc, batch_id, time, consume, n)
  left join lateral (select t.last_counter from tag t where t.uid = g.uid and t.epoch = g.epoch limit 1) t on true
  left join lateral (select p.picc, p.first_seen from tap p
    where p.uid = g.uid and p.epoch = g.epoch and p.counter = g.counter limit 1) p on true
  left join lateral (select b.status from tag_batch b where b.id = g.batch_id limit 1) b on true),
unused as materialized (
  select distinct on (uid, epoch) * from k
  where consume and known is null and status is distinct from 'revoked' and not newer and counter > coalesce(last_counter, 0)
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

create or replace function present_taps(shard bytea, uids bytea[], epochs int[], counters int[], piccs bytea[], batches text[], times text[],
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

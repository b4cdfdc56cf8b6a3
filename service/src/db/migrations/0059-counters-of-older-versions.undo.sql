-- Lost is which counters an older version advanced: used links of a tag count again where the batch of its row was revoked.
create or replace function accept_taps(uids bytea[], epochs int[], counters int[], piccs bytea[], batches text[], times text[], consumes boolean[],
  tokens numeric[], tags bytea[], out last_counter int, out picc bytea, out age float8, out status text, out newer boolean, out fresh boolean,
  out announced boolean)
  returns setof record language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare moment timestamptz := clock_timestamp(); published numeric[]; product numeric
  ; published_tags bytea[]; product_tag bytea; begin
  for last_counter, picc, age, status, newer, fresh, announced, product, product_tag in with k as materialized (
    select g.*, coalesce(g.time::timestamptz, clock_timestamp()) as at,
      case when t.batch_id <> g.batch_id and t.registered_at is null and (select o.status from tag_batch o where o.id = t.batch_id) = 'revoked'
        then coalesce((t.former_counters ->> g.batch_id)::int, case when b.taps_taken_back_at is not null then t.last_counter end)
        else t.last_counter end as last_counter, p.picc as known, p.first_seen, p.announced_at,
      case when b.status is distinct from 'revoked' and own.batch_id <> g.batch_id then 'elsewhere' else b.status end as status,
      exists (select from tag x where x.uid = g.uid and x.epoch > g.epoch
        and (x.registered_at is not null or coalesce((select o.status from tag_batch o where o.id = x.batch_id), '') <> 'revoked')) as newer
    from unnest(uids, epochs, counters, piccs, batches, times, consumes, tokens, tags) with ordinality
      as g (uid, epoch, counter, picc, batch_id, time, consume, token, product_tag, n)
    left join lateral (select t.last_counter, t.batch_id, t.registered_at, t.former_counters from tag t
      where t.uid = g.uid and t.epoch = g.epoch limit 1) t on true
    left join lateral (select x.batch_id from tag x where x.uid = g.uid and x.epoch <= g.epoch
        and (x.registered_at is not null or coalesce((select o.status from tag_batch o where o.id = x.batch_id), '') <> 'revoked')
      order by x.registered_at is null, x.epoch desc limit 1) own on true
    left join lateral (select p.picc, p.first_seen, p.announced_at from tap p
      where p.uid = g.uid and p.epoch = g.epoch and p.counter = g.counter limit 1) p on true
    left join lateral (select b.status, b.taps_taken_back_at from tag_batch b where b.id = g.batch_id limit 1) b on true),
  unused as materialized (
    select distinct on (uid, epoch) * from k
    where consume and known is null and coalesce(status, '') not in ('revoked', 'elsewhere') and not newer and counter > coalesce(last_counter, 0)
    order by uid, epoch, counter, n),
  adv as (
    insert into tag as t (uid, epoch, batch_id, last_counter) select uid, epoch, batch_id, counter from unused
    on conflict (uid, epoch) do update set last_counter = excluded.last_counter, batch_id = excluded.batch_id,
      former_counters = case when t.batch_id = excluded.batch_id then t.former_counters
        else coalesce(t.former_counters, '{}') || jsonb_object(array[t.batch_id], array[t.last_counter::text]) end
    where case when t.batch_id = excluded.batch_id then t.last_counter
      when t.registered_at is null and (select o.status from tag_batch o where o.id = t.batch_id) = 'revoked'
        then coalesce((t.former_counters ->> excluded.batch_id)::int,
          (select t.last_counter from tag_batch o where o.id = excluded.batch_id and o.taps_taken_back_at is not null), 0)
      end < excluded.last_counter returning uid, epoch),
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

-- `former` is the batch of the row that was read. Where it is another one that is revoked, its counter is none of this batch.
create or replace function present_taps(shard bytea, uids bytea[], epochs int[], counters int[], piccs bytea[], batches text[], times text[],
  consumes boolean[], out place int, out last_counter int, out picc bytea, out age float8, out status text, out newer boolean,
  out fresh boolean) returns setof record language plpgsql as $$
#variable_conflict use_column
declare moment timestamptz; seen timestamptz; own text; former text; own_counter int; is_elsewhere boolean; is_taken boolean; begin
  for n in 1 .. cardinality(uids) loop
    place := n
    ; moment := coalesce(times[n]::timestamptz, clock_timestamp())
    ; fresh := false; status := null; picc := null; seen := null
    ; select max(t.last_counter) filter (where t.epoch = epochs[n]), max(t.batch_id) filter (where t.epoch = epochs[n]),
        (max(t.former_counters ->> batches[n]) filter (where t.epoch = epochs[n]))::int, coalesce(bool_or(t.epoch > epochs[n] and (t.registered_at is not null
          or coalesce((select o.status from tag_batch o where o.id = t.batch_id), '') <> 'revoked')), false)
      into last_counter, former, own_counter, newer from tag t where t.uid = uids[n]
    ; own := null
    ; select x.batch_id into own from tag x where x.uid = uids[n] and x.epoch <= epochs[n]
        and (x.registered_at is not null or coalesce((select o.status from tag_batch o where o.id = x.batch_id), '') <> 'revoked')
      order by x.registered_at is null, x.epoch desc limit 1
    ; is_elsewhere := coalesce(own <> batches[n], false)
    ; is_taken := false
    ; if former <> batches[n] and not is_elsewhere then
      select o.status = 'revoked' into is_taken from tag_batch o where o.id = former
      ; if is_taken then
        if own_counter is null then select last_counter into own_counter from tag_batch o
          where o.id = batches[n] and o.taps_taken_back_at is not null
        ; end if
        ; last_counter := own_counter
      ; end if
    ; end if
    ; select p.picc, p.first_seen into picc, seen from tap p
      where p.uid = uids[n] and p.epoch = epochs[n] and p.counter = counters[n]
    ; select b.status into status from tag_batch b where b.id = batches[n]
    ; if is_elsewhere and status is distinct from 'revoked' then status := 'elsewhere'; end if
    ; age := extract(epoch from moment - seen)
    ; if consumes[n] and picc is null and status is distinct from 'revoked' and not is_elsewhere and not newer
      and counters[n] > coalesce(last_counter, 0) then
      insert into tag as t (uid, epoch, batch_id, last_counter) values (uids[n], epochs[n], batches[n], counters[n])
        on conflict on constraint tag_pkey do update set last_counter = excluded.last_counter, batch_id = excluded.batch_id,
          former_counters = case when t.batch_id = excluded.batch_id then t.former_counters
            else coalesce(t.former_counters, '{}') || jsonb_object(array[t.batch_id], array[t.last_counter::text]) end
        where case when t.batch_id = excluded.batch_id then t.last_counter
          when t.batch_id = former and is_taken and t.registered_at is null
            then greatest((t.former_counters ->> excluded.batch_id)::int, own_counter, 0) end < excluded.last_counter
      ; fresh := found
      ; if fresh then
        insert into tap (uid, epoch, counter, picc, first_seen)
          values (uids[n], epochs[n], counters[n], piccs[n], moment)
      ; end if
    ; end if
    ; return next
  ; end loop
  ; end $$;

-- Registers a tag, as before. Where it deletes the rows of later lives, it keeps their counters: a tag that is registered in such a life again
-- verified by links that were used up.
create or replace function import_tag(uid bytea, epoch int, batch text, counter int, token numeric, gtin text, serial text,
  out newer boolean, out created boolean) language plpgsql as $$
#variable_conflict use_column
declare moment timestamptz := clock_timestamp(); former record; had numeric; used int; kept jsonb := '{}'; begin
  select count(*) filter (where t.epoch > $2 and counts) > 0,
      case when count(*) filter (where t.epoch = $2 and t.batch_id <> $3 and counts) = 0 then count(*) filter (where t.epoch = $2) = 0 end,
      max(t.token_id) filter (where t.epoch = $2)
    into newer, created, had from (select x.*, x.registered_at is not null
      or coalesce((select o.status from tag_batch o where o.id = x.batch_id), '') <> 'revoked' as counts from tag x where x.uid = $1) t
  ; if newer or created is null then return; end if
  ; select max((t.former_counters ->> $3)::int) into used from tag t where t.uid = $1
  ; if used is null and exists (select from tag_batch o where o.id = $3 and o.taps_taken_back_at is not null) then
    select max(t.last_counter) into used from tag t where t.uid = $1 and t.epoch = $2
  ; end if
  ; for former in select t.batch_id, t.last_counter, t.former_counters from tag t where t.uid = $1 and t.epoch > $2 loop
    kept := kept || coalesce(former.former_counters, '{}') || jsonb_object(array[former.batch_id], array[former.last_counter::text])
  ; end loop
  ; delete from tap p where p.uid = $1 and p.epoch > $2
  ; delete from tag t where t.uid = $1 and t.epoch > $2
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
  ; insert into tag as t (uid, epoch, batch_id, last_counter, baseline_counter, token_id, registered_at, former_counters)
    values ($1, $2, $3, greatest($4, used), $4, $5, moment, nullif(kept, '{}'))
    on conflict on constraint tag_pkey do update set batch_id = excluded.batch_id,
      last_counter = greatest(excluded.last_counter,
        case when t.batch_id = excluded.batch_id then t.last_counter else (t.former_counters ->> excluded.batch_id)::int end),
      former_counters = nullif(coalesce(t.former_counters, '{}') || coalesce(excluded.former_counters, '{}') || case
        when t.batch_id = excluded.batch_id then '{}' else jsonb_object(array[t.batch_id], array[t.last_counter::text]) end, '{}'),
      baseline_counter = coalesce(t.baseline_counter, excluded.baseline_counter),
      token_id = coalesce(excluded.token_id, t.token_id),
      registered_at = coalesce(t.registered_at, excluded.registered_at)
    where t.batch_id = excluded.batch_id or t.registered_at is null
  ; if not found then created := null; return; end if
  ; if $6 is not null then perform register_item($5, $6, $7, true); end if
  ; end $$;

alter table tag drop column own_counter;

-- Nothing is lost at once: registrations at the same moment may lose counters again.
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
  ; select greatest(max((t.former_counters ->> $3)::int), max((t.former_counters ->> ('*' || $2::text))::int),
      max(t.last_counter) filter (where t.epoch = $2 and t.own_counter is distinct from t.last_counter))
    into used from tag t where t.uid = $1
  ; for former in select t.epoch, t.batch_id, t.last_counter, t.own_counter, t.former_counters from tag t
      where t.uid = $1 and t.epoch > $2 order by t.epoch loop
    kept := kept || coalesce(former.former_counters, '{}') || jsonb_object(array[former.batch_id], array[former.last_counter::text])
    ; if former.own_counter is distinct from former.last_counter then
      kept := kept || jsonb_object(array['*' || former.epoch::text], array[former.last_counter::text])
    ; end if
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
        case
        when t.batch_id = excluded.batch_id or t.own_counter is distinct from t.last_counter then t.last_counter
        else (t.former_counters ->> excluded.batch_id)::int end),
      former_counters = nullif(coalesce(t.former_counters, '{}') || coalesce(excluded.former_counters, '{}') || case
        when t.batch_id = excluded.batch_id then '{}' else jsonb_object(array[t.batch_id], array[t.last_counter::text]) end, '{}'),
      baseline_counter = coalesce(t.baseline_counter, excluded.baseline_counter),
      token_id = coalesce(excluded.token_id, t.token_id),
      registered_at = coalesce(t.registered_at, excluded.registered_at)
    where t.batch_id = excluded.batch_id or t.registered_at is null
  ; if not found then created := null; return; end if
  ; if $6 is not null then perform register_item($5, $6, $7, true); end if
  ; end $$;

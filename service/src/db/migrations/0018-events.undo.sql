-- The feed of events is lost; the two specified subscriptions go on.
create or replace function announce_tap(uid bytea, epoch int, counter int, token numeric) returns boolean language plpgsql as $$
declare told timestamptz; begin
  update tap set announced_at = clock_timestamp()
    where tap.uid = $1 and tap.epoch = $2 and tap.counter = $3 and announced_at is null returning announced_at into told
  ; if told is null then return false; end if
  ; insert into asset_tap (token_id, tapped_at) values ($4, told) on conflict do nothing
  ; if not exists (select from asset where token_id = $4) then perform 1 from index_cursor for share -- the step that may bring it
  ; end if
  ; if exists (select from asset where token_id = $4 and tapped_at is null) then
    update asset set tapped_at = told where token_id = $4 and tapped_at is null
  ; end if
  ; insert into outbox (topic, token_id, payload) values ('tap', $4,
    jsonb_build_object('at', to_char(told at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))
  ; return true; end $$;
alter table index_cursor drop column fed_epoch, drop column fed_since;
drop trigger outbox_trimmed on outbox;
drop function note_outbox_trim();
drop table outbox_trim;
drop index outbox_token, outbox_kind;
alter table outbox drop column kind, drop column happened_at, drop column retracts, drop column retracted;

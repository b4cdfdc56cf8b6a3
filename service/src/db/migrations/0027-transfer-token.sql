-- A transfer names its product by the token, so that both can be on one shard (docs/capacity.md). Programs from before know `asset_pk`
-- only, so that a trigger completes the rows of either.
alter table transfer add column token_id numeric(78, 0);
alter table transfer alter column asset_pk drop not null;
create function complete_transfer() returns trigger language plpgsql as $$ begin
  if new.token_id is null then new.token_id := (select a.token_id from asset a where a.pk = new.asset_pk)
  ; elsif new.asset_pk is null then new.asset_pk := (select a.pk from asset a where a.token_id = new.token_id)
  ; end if
  ; return new; end $$;
create trigger transfer_complete before insert or update on transfer for each row execute function complete_transfer();

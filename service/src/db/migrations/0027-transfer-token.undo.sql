-- Nothing is lost: a transfer names its product by a number of the row again.
drop trigger transfer_complete on transfer;
drop function complete_transfer;
delete from transfer where asset_pk is null;
alter table transfer alter column asset_pk set not null;
alter table transfer drop column token_id;

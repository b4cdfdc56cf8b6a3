-- What keeps lists as fast over millions of products as over thousands.

-- Transfers of one status, newest first. An index over all statuses was passed over for that of all transfers, which is walked for long
-- where the newest ones have another status.
drop index transfer_status;
create index transfer_confirmed on transfer (initiated_at desc, pk desc) where status = 'CONFIRMED';
create index transfer_failed on transfer (initiated_at desc, pk desc) where status = 'FAILED';
create index transfer_pending on transfer (initiated_at desc, pk desc) where status = 'PENDING';

-- The sums of all brands apart from those of each, so that no count depends on how many brands there are.
lock table asset in share row exclusive mode;
create table product_total (
  verified boolean not null,
  n bigint not null
);
insert into product_total select verified, sum(n) from product_count group by 1;
create index product_count_brand on product_count (brand, verified);
create or replace function count_new_products() returns trigger language plpgsql as $$ begin
  insert into product_count select brand, verified, count(*) from new_rows group by 1, 2
  ; insert into product_total select verified, count(*) from new_rows group by 1
  ; return null; end $$;
create or replace function count_old_products() returns trigger language plpgsql as $$ begin
  insert into product_count select brand, verified, -count(*) from old_rows group by 1, 2
  ; insert into product_total select verified, -count(*) from old_rows group by 1
  ; return null; end $$;
create or replace function count_changed_products() returns trigger language plpgsql as $$ begin
  insert into product_count select brand, verified, sum(n) from (
    select brand, verified, 1 as n from new_rows union all select brand, verified, -1 from old_rows) changed
  group by 1, 2 having sum(n) <> 0
  ; insert into product_total select verified, sum(n) from (
    select verified, 1 as n from new_rows union all select verified, -1 from old_rows) changed
  group by 1 having sum(n) <> 0
  ; return null; end $$;

-- Taps no longer wait for one another's commits. Whoever writes an event holds this lock with all others, from before the number is
-- given until the commit; a reader takes it alone for a moment: then every number that was given is committed, and none comes later
-- below it.
create or replace function lock_outbox() returns trigger language plpgsql as $$ begin
  perform pg_advisory_xact_lock_shared(84532, 2)
  ; return null; end $$;
-- PostgreSQL lets transactions with a notice commit one after another, so that of a tap is sent after its commit, by the service.
drop trigger outbox_announced on outbox;
create trigger outbox_announced after insert on outbox
  for each row when (new.topic <> 'tap') execute function announce_outbox();

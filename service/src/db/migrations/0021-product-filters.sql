-- Lists of products and transfers under each filter of GraphQL read an index in their own order, and groups of products are sums.

create index asset_state on asset (state, created_at desc, pk desc);
create index asset_gtin on asset (gtin, created_at desc, pk desc) where gtin is not null;
create index asset_serial on asset (serial, created_at desc, pk desc) where serial is not null;
create index asset_flagged on asset (created_at desc, pk desc) where state = 5 or (flags & 31) <> 0;
create index asset_lost on asset (created_at desc, pk desc) where (flags & 1) <> 0;
create index asset_stolen on asset (created_at desc, pk desc) where (flags & 2) <> 0;
create index asset_recall on asset (created_at desc, pk desc) where (flags & 4) <> 0;
create index asset_stolen_confirmed on asset (created_at desc, pk desc) where (flags & 8) <> 0;
create index asset_investigation on asset (created_at desc, pk desc) where (flags & 16) <> 0;
create index asset_tamper on asset (created_at desc, pk desc) where (flags & 32) <> 0;
create index asset_tagged on asset (created_at desc, pk desc) where tag_hash is not null;
create index asset_untagged on asset (created_at desc, pk desc) where tag_hash is null;
-- Names without a difference of capitals in ASCII, in the order of code points, which every database has.
create index asset_by_name on asset (lower(coalesce(name, '') collate "C") desc, pk desc);
create index transfer_from on transfer (from_addr, initiated_at desc, pk desc);
create index transfer_to on transfer (to_addr, initiated_at desc, pk desc);
create index product_count_key on product_count ((coalesce(brand, '') collate "C"));

-- How many products there are of each state, with each report, and of each day, as sums like product_count.
lock table asset in share row exclusive mode;
create table product_group (
  dimension text not null,
  key text not null,
  n bigint not null
);
create function groups_of(state smallint, flags smallint, created_at timestamptz)
  returns table (dimension text, key text) language sql stable as $$
  select 'STATE', $1::text
  union all select 'DAY', to_char($3 at time zone 'UTC', 'YYYY-MM-DD')
  union all select 'FLAG', to_char(bit, 'FM00') from unnest(array[1, 2, 4, 8, 16, 32]) bit where $2 & bit <> 0 $$;
insert into product_group select g.dimension, g.key, count(*) from asset, groups_of(state, flags, created_at) g group by 1, 2;
create index product_group_key on product_group (dimension, key collate "C");

create function group_new_products() returns trigger language plpgsql as $$ begin
  insert into product_group select g.dimension, g.key, count(*) from new_rows, groups_of(state, flags, created_at) g group by 1, 2
  ; return null; end $$;
create function group_old_products() returns trigger language plpgsql as $$ begin
  insert into product_group select g.dimension, g.key, -count(*) from old_rows, groups_of(state, flags, created_at) g group by 1, 2
  ; return null; end $$;
create function group_changed_products() returns trigger language plpgsql as $$ begin
  insert into product_group select g.dimension, g.key, sum(n) from (
    select state, flags, created_at, 1 as n from new_rows union all select state, flags, created_at, -1 from old_rows) changed,
    groups_of(state, flags, created_at) g
  group by 1, 2 having sum(n) <> 0
  ; return null; end $$;
create trigger group_inserted after insert on asset referencing new table as new_rows
  for each statement execute function group_new_products();
create trigger group_deleted after delete on asset referencing old table as old_rows
  for each statement execute function group_old_products();
create trigger group_updated after update on asset referencing old table as old_rows new table as new_rows
  for each statement execute function group_changed_products();

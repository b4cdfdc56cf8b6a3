-- A search for part of a name reads distinct names, of which there are few, and then the products of each in the order of the list. The
-- trigrams of all products grew with their number, and so did every search.
lock table asset in share row exclusive mode;
create table product_name (
  name text primary key
);
insert into product_name select distinct name from asset where name is not null;
create index product_name_part on product_name using gin (name gin_trgm_ops);
create index asset_named on asset (name, created_at desc, pk desc) where name is not null;
drop index asset_name;

-- Names stay when their last product gets another one: a search then finds a name without products.
create function add_product_names() returns trigger language plpgsql as $$ begin
  insert into product_name select distinct n.name from new_rows n
    where n.name is not null and not exists (select from product_name p where p.name = n.name)
    order by n.name on conflict do nothing
  ; return null; end $$;
create trigger named_inserted after insert on asset referencing new table as new_rows
  for each statement execute function add_product_names();
create trigger named_updated after update on asset referencing new table as new_rows
  for each statement execute function add_product_names();

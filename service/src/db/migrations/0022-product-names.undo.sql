-- Nothing is lost: names follow from the products. The trigrams of all products are indexed again.
drop trigger named_inserted on asset;
drop trigger named_updated on asset;
drop function add_product_names;
drop table product_name;
drop index asset_named;
create index asset_name on asset using gin (name gin_trgm_ops);

-- Nothing is lost: indexes and sums of groups follow from the tables.
drop trigger group_inserted on asset;
drop trigger group_deleted on asset;
drop trigger group_updated on asset;
drop function group_new_products;
drop function group_old_products;
drop function group_changed_products;
drop function groups_of;
drop table product_group;
drop index product_count_key, transfer_to, transfer_from, asset_by_name, asset_untagged, asset_tagged, asset_tamper,
  asset_investigation, asset_stolen_confirmed, asset_recall, asset_stolen, asset_lost, asset_flagged, asset_serial, asset_gtin, asset_state;

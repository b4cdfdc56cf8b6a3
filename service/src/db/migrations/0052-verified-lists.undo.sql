-- Nothing is lost: indexes follow from the table.
drop index asset_unverified, asset_brand_verified;

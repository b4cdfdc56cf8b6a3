-- Nothing is lost: it is an index.
drop index asset_without_text;

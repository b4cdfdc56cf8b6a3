-- The tags of taps are lost: a tap counts for any tag of its token again.
alter table asset_tap drop column tag_hash;

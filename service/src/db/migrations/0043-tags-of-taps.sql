-- The tag that was tapped, as its commitment. It is null until the index changes the tag of the token, or is deleted: until then the tag is
-- the one that is bound. Another tag of the same token, after a reorganisation or in another contract, was not tapped.
alter table asset_tap add column tag_hash bytea;

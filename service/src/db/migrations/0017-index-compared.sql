-- The end of the leader's last comparison of the index with the chain, which `_meta` of GraphQL shows.
alter table index_cursor add column compared_at timestamptz;

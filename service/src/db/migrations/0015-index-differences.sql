-- The result of the leader's last comparison of the index with the chain, for all processes; null before the first.
alter table index_cursor add column differences integer;

-- The time of the last comparison is lost; the next one is a minute away.
alter table index_cursor drop column compared_at;

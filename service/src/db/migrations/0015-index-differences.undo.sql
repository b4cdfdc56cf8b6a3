-- The last result is lost; the next leader compares again.
alter table index_cursor drop column differences;

-- Lost are the times of blocks: at an earlier block, offers expire by the last event before it again.
alter table index_block drop column time;

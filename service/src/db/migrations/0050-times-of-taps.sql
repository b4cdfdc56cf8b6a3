-- The oldest taps are looked for again and again. The former index (BRIN) keeps the times of deleted rows for each range of the table, so
-- that each look read the whole table once taps had been deleted. The new one is built first, while taps can be read.
create index tap_first_seen_at on tap (first_seen);
drop index tap_first_seen;

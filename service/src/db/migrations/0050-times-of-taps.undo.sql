-- Nothing is lost: it is an index.
create index tap_first_seen on tap using brin (first_seen);
drop index tap_first_seen_at;

-- Nothing is lost: it is an index.
drop index outbox_created;

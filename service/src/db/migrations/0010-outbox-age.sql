-- Events of the outbox go after an hour; the leader looks for them every few seconds, which must not read all of them.
create index outbox_created on outbox (created_at);

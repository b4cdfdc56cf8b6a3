-- The parties of each offer with a text: an offer that fails, or is never sent, becomes no transfer that names them.
create table offered_message (
  hash bytea not null check (octet_length(hash) = 32),
  transfer_id text not null check (length(transfer_id) <= 100),
  from_addr bytea not null check (octet_length(from_addr) = 20),
  to_addr bytea not null check (octet_length(to_addr) = 20),
  primary key (hash, transfer_id, from_addr, to_addr)
);
create index offered_message_from on offered_message (from_addr);
create index offered_message_to on offered_message (to_addr);

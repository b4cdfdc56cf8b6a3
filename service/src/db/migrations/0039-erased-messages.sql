-- Messages that were erased, by transfer. A text stays in transfer_message as long as another transfer has it.
create table erased_message (
  transfer_id text not null check (length(transfer_id) <= 100),
  hash bytea not null check (octet_length(hash) = 32),
  primary key (transfer_id, hash)
);

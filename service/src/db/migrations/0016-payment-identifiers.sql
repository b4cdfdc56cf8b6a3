-- Identifiers that buyers give to payments (x402 extension `payment-identifier`): one buys once, whatever authorization it comes with.
create table payment_identifier (
  chain_id bigint not null,
  asset bytea not null,
  payer bytea not null,
  id text not null check (octet_length(id) between 16 and 128),
  nonce bytea not null,
  primary key (chain_id, asset, payer, id),
  foreign key (chain_id, asset, payer, nonce) references payment (chain_id, asset, payer, nonce) on delete cascade
);
create index payment_identifier_nonce on payment_identifier (chain_id, asset, payer, nonce);

-- Payment channels (x402 scheme `batch-settlement`, spec §4.8): what the contract holds for each, and what was sold through it.
create table channel (
  id bytea primary key check (octet_length(id) = 32),
  chain_id bigint not null,
  asset bytea not null check (octet_length(asset) = 20),
  payer bytea not null check (octet_length(payer) = 20),
  payer_authorizer bytea not null check (octet_length(payer_authorizer) = 20),
  receiver bytea not null check (octet_length(receiver) = 20),
  receiver_authorizer bytea not null check (octet_length(receiver_authorizer) = 20),
  withdraw_delay bigint not null,
  salt bytea not null check (octet_length(salt) = 32),
  -- Read from the chain: deposits less refunds, what was claimed of them, what the payer has asked back.
  balance numeric(39, 0) not null,
  claimed numeric(39, 0) not null,
  withdrawal numeric(39, 0) not null,
  read_block bigint not null,
  read_at timestamptz not null default clock_timestamp(),
  -- The sum of all sales. The signature is that of the voucher over it; null where the chain had more than this table.
  charged numeric(39, 0) not null,
  signature bytea check (octet_length(signature) = 65),
  unclaimed_since timestamptz,
  -- The process that claims it: number of a session lock.
  holder integer not null default 0,
  created_at timestamptz not null default clock_timestamp()
);
create index channel_unclaimed on channel (unclaimed_since) where charged > claimed;

alter table payment
  -- transfer: to the seller. deposit: into a channel. voucher: a purchase through a channel.
  add column kind text not null default 'transfer' check (kind in ('transfer', 'deposit', 'voucher')),
  add column channel bytea check (octet_length(channel) = 32),
  add check ((kind = 'transfer') = (channel is null)),
  -- A purchase through a channel has no transaction of its own.
  drop constraint payment_check1,
  add constraint payment_done check (state <> 'done' or (answer is not null and (tx_hash is not null or kind = 'voucher')));

-- Product metadata by its hash: keccak256 of the RFC 8785 text in `body`. Rows never change.
create table metadata (
  hash bytea primary key check (octet_length(hash) = 32),
  body text not null check (octet_length(body) <= 16384),
  created_at timestamptz not null default now()
);

-- Pictures of products under the SHA-256 of their bytes, which product details name, so that the hash on chain covers them.
create table picture (
  hash bytea primary key check (octet_length(hash) = 32),
  type text not null check (type in ('image/avif', 'image/webp', 'image/jpeg')),
  body bytea not null check (octet_length(body) <= 61440)
);

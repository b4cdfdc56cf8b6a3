-- Restricted elements of product details, a document for each tier, under the hash that the public details hold.
create table restricted_details (
  hash bytea primary key check (octet_length(hash) = 32),
  tier text not null check (tier in ('interest', 'authority')),
  body text not null check (octet_length(body) <= 16384)
);
-- The rights to read them. A version without them gives a key with these scopes nothing more.
alter table api_key drop constraint api_key_scopes_check,
  add constraint api_key_scopes_check check (cardinality(scopes) > 0 and scopes <@ array['read', 'write', 'taps',
    'mint', 'bind', 'activate', 'claim', 'transfer', 'flag:lost', 'flag:stolen', 'flag:recall', 'flag:tamper', 'resolve', 'recycle',
    'approve', 'read:products', 'read:owners', 'read:taps', 'passport:interest', 'passport:authority']);

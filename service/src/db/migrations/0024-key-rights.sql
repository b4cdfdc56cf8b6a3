-- The rights of API keys: scopes by verb, of which `read`, `write` and `taps` are aliases, and brands. A version that knows the aliases
-- only finds no scope of its own in a key with brands, networks or an end, so that it refuses what it cannot narrow.
alter table api_key drop constraint api_key_scopes_check,
  add constraint api_key_scopes_check check (cardinality(scopes) > 0 and scopes <@ array['read', 'write', 'taps',
    'mint', 'bind', 'activate', 'claim', 'transfer', 'flag:lost', 'flag:stolen', 'flag:recall', 'flag:tamper', 'resolve', 'recycle',
    'read:products', 'read:owners', 'read:taps']),
  add column brands text[] check (cardinality(brands) between 1 and 20),
  add column networks text[] check (cardinality(networks) between 1 and 20),
  add column expires_at timestamptz;

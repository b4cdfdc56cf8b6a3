-- Restricted elements of product details are lost; the public details keep their hashes.
drop table restricted_details;
-- Keys lose the scopes passport:interest and passport:authority; those that had no other are revoked.
update api_key set revoked_at = coalesce(revoked_at, clock_timestamp()), scopes = array['read']
  where scopes <@ array['passport:interest', 'passport:authority'];
update api_key set scopes = array_remove(array_remove(scopes, 'passport:interest'), 'passport:authority')
  where scopes && array['passport:interest', 'passport:authority'];
alter table api_key drop constraint api_key_scopes_check,
  add constraint api_key_scopes_check check (cardinality(scopes) > 0 and scopes <@ array['read', 'write', 'taps',
    'mint', 'bind', 'activate', 'claim', 'transfer', 'flag:lost', 'flag:stolen', 'flag:recall', 'flag:tamper', 'resolve', 'recycle',
    'approve', 'read:products', 'read:owners', 'read:taps']);

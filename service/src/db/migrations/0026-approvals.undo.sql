-- Requests for approval are lost: those that were approved and not carried out are never done.
drop table approval;
drop function refuse_approval_change();
-- Keys lose the scope approve; those that had no other are revoked.
update api_key set revoked_at = coalesce(revoked_at, clock_timestamp()), scopes = array['read'] where scopes = array['approve'];
update api_key set scopes = array_remove(scopes, 'approve') where 'approve' = any(scopes);
alter table api_key drop constraint api_key_scopes_check,
  add constraint api_key_scopes_check check (cardinality(scopes) > 0 and scopes <@ array['read', 'write', 'taps',
    'mint', 'bind', 'activate', 'claim', 'transfer', 'flag:lost', 'flag:stolen', 'flag:recall', 'flag:tamper', 'resolve', 'recycle',
    'read:products', 'read:owners', 'read:taps']);

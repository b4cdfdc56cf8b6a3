-- Keys with verbs, brands, networks or an end are revoked: the version before has none of them, and would give them more than they had.
update api_key set revoked_at = coalesce(revoked_at, clock_timestamp()), scopes = array['read']
  where num_nonnulls(brands, networks, expires_at) > 0 or not scopes <@ array['read', 'write', 'taps'];
alter table api_key drop column brands, drop column networks, drop column expires_at, drop constraint api_key_scopes_check,
  add constraint api_key_scopes_check check (scopes <@ array['read', 'write', 'taps'] and cardinality(scopes) > 0);

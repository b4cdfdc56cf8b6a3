-- The log of taps and its anomalies are lost, and the scope `taps` of keys; keys with no other scope are revoked.
update api_key set revoked_at = coalesce(revoked_at, clock_timestamp()), scopes = array['read'] where scopes = array['taps'];
update api_key set scopes = array_remove(scopes, 'taps') where 'taps' = any(scopes);
alter table api_key drop constraint api_key_scopes_check,
  add constraint api_key_scopes_check check (scopes <@ array['read', 'write'] and cardinality(scopes) > 0);
drop index asset_tag_hash;
drop table tap_anomaly;
drop table tap_log;

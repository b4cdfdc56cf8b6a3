-- A revoked key of the issuer (spec §9) is in force on every instance, also where the key file is a copy that was made before.
-- Unix seconds from which signatures of the key count for nothing; null for a key that is not revoked.
alter table issuer_key add column revoked_at bigint;

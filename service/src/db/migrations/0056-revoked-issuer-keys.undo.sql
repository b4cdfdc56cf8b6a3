-- Revocations of issuer keys are lost here, and remain in the key files where they were made. The next start publishes them from there.
alter table issuer_key drop column revoked_at;

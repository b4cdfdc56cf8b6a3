-- Fingerprints of keys and brands of a batch outlast the start of a version without them, which overwrites `settings`. Former keys of the batch
-- verified again from then on. This version writes both columns.
alter table tag_batch add column kept_settings jsonb;
update tag_batch set kept_settings = settings where settings ? 'keys' or settings ? 'brands';

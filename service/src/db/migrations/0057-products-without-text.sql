-- Products that came before the metadata of their hash: the others of a model, which may be millions, have its text already.
-- An operator may have built it beforehand, without a lock (docs/upgrading.md).
create index if not exists asset_without_text on asset (metadata_hash) where name is null and brand is null and metadata_hash is not null;

-- Lists of verified products of a brand, and of products that are not verified, which had to look at all others on their way.
-- An operator may have built them beforehand, without a lock (docs/upgrading.md).
create index if not exists asset_brand_verified on asset (brand, created_at desc, pk desc) where verified and brand is not null;
create index if not exists asset_unverified on asset (created_at desc, pk desc) where not verified;

-- The outbox keeps the brand of the product with each event. When an event is taken back, it and its retraction get all brands that the
-- product had meanwhile, and belong to their keys. Null is not known: a tap, or a row of a version before, which goes by the product.
alter table outbox add column brands text[];

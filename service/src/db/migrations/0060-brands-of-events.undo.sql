-- Lost is which keys got the events that were taken back. Retractions go by the brand that the product has now.
alter table outbox drop column brands;

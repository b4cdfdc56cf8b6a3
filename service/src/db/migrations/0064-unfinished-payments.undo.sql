-- Nothing is lost: unfinished payments have the index of before.
create index payment_settling on payment (looked_at) where state = 'settling';
drop index payment_unfinished;

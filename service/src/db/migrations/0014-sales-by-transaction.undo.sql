-- Nothing is lost: payments of a transaction are found more slowly.
drop index payment_transaction;

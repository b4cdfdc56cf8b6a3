-- Nothing is lost: payments of a removed block are found more slowly.
drop index payment_in_block;
drop index payment_of_block;
drop index settlement_of_block;

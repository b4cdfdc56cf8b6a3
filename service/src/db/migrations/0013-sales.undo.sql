-- The asset of each payment is lost as a column; the proof still names it.
create index payment_settlement on payment (settlement) where state = 'settling';
drop index payment_of_settlement;
drop index payment_dead;
drop index payment_open;
drop index settlement_lost;
alter table payment drop column token_id;

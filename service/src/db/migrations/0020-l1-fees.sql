-- The data fee that Base takes beside the gas of a transaction, in wei (`l1Fee` of its receipt).
alter table settlement add column if not exists l1_fee numeric(78, 0) not null default 0;

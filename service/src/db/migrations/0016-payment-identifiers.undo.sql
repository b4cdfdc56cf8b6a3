-- Identifiers of payments are lost: a buyer who signs again with one is charged again.
drop table payment_identifier;

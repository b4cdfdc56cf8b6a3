-- Nothing is lost: every start with PASSPORT_SIGNING=on publishes the public halves of its key file again.
drop table issuer_key;

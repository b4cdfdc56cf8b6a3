-- Nothing is lost: the index follows from the table.
drop index token_of_item_serial;

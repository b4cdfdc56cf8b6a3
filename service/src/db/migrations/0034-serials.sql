-- An item is looked up by its serial alone; items of several classes may have the same one.
create index token_of_item_serial on token_of_item (serial, gtin);
